"""Words that people type into the search, for pages whose title says it otherwise."""

from pathlib import Path

WORDS = {
    "quickstart": "hello world, getting started, first script",
    "guides": "faq, questions, how to",
    "tutorials/04-saving": "transfer learning, fine-tuning, finetune",
    "tutorials/06-several-gpus": "multi gpu, multiple gpus, data parallel",
    "tutorials/07-dqn": "reinforcement learning",
    "howto/data": "class imbalance, rare class, oversampling, csv, parquet, pytorch dataloader",
    "howto/learning-rate": "lr, lr schedule, warmup, decay, learning rate schedule",
    "validation": "confusion matrix, top-5, metrics, class imbalance, wandb, best model",
    "howto/serving": "serving, serve, deploy, deployment, http, rest, server",
    "howto/debugging": "nan, inf, debug",
    "tutorials/your-images": "image folder, image folder png, own images, train validation split",
    "tutorials/your-table": "table, csv, csv table, pandas, missing values, class weights",
    "tutorials/your-texts": "own texts, text classification",
    "errors": "exceptions, catch errors",
    "dataflow": "data loader, dataloader, pipeline, multiprocessing",
    "augmentors": "data augmentation, augmentation, random crop",
    "trainers": "tf.data, queue, feed_dict, placeholder",
    "resuming": "resume, continue training, ctrl-c, preemption, kill",
    "runs": "tensorboard, log directory, logs, checkpoint files",
    "weights": "savedmodel, savedmodel export, export, export model, pretrained, npz",
    "predicting": "inference, predict",
    "distributed": "multi node, horovod, parameter server, scaling",
    "learning": "atari, breakout, scores",
    "performance": "benchmark, benchmarks, speed",
    "profiling": "slow, profile, throughput, bottleneck, gpu memory, out of memory, oom",
    "precision": "fp16, bfloat16, xla, mixed precision",
    "migration": "tensorflow 2, tf1, tensorflow 1, old scripts, upgrade, differences, old names",
    "reference/api/saving": "checkpoint, save model, best model, save",
    "reference/api/validation": "early stop, early stopping, evaluation, accuracy",
    "reference/api/schedules": "learning rate, scheduler, hyperparameter",
    "reference/api/normalization": "batch norm, batch normalization, weight decay, regularization",
    "reference/api/files": "lmdb, tfrecord, hdf5",
    "reference/api/several-gpus": "gpu, gpus",
    "reference/api/gradients": "gradient clipping, clip gradients, accumulate gradients, adam",
    "examples/a3c": "a3c, a2c, actor critic",
    "examples/dqn": "dqn, deep q learning, deep q network",
    "examples/scripts/GAN-DCGAN": "gan, dcgan",
}


def add(app, name, content):
    """Puts the words of a page into its index, which the search looks at before all text."""
    words = [f"! {word}" for word in WORDS.get(name, "").split(", ") if word]
    if not words:
        return
    if Path(app.env.doc2path(name)).suffix == ".rst":
        content[0] = f".. index:: {', '.join(words)}\n\n{content[0]}"
    else:
        content[0] = f"```{{index}} {', '.join(words)}\n```\n\n{content[0]}"


def check(app, env):
    """Warns of a page that is not there, which ends `make docs`."""
    from sphinx.util.logging import getLogger

    for name in sorted(set(WORDS) - set(env.found_docs)):
        getLogger(__name__).warning("words.py names %s, which is no page", name, type="words")


def setup(app):
    app.connect("source-read", add)
    app.connect("env-updated", check)
    return {"parallel_read_safe": True}
