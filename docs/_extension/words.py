"""Words that people type into the search, for pages whose title says it otherwise.

They are entries of the index, which the search looks at before all text, and keywords of the page,
so that it is also found by more words than one entry has. `scripts/search` asks the site.
"""

import re
from pathlib import Path

WORDS = {
    "quickstart": "hello world, getting started, first script, install, pip install",
    "guides": "faq, questions, how to",
    "tutorials/03-callbacks": "callback, own callback, custom callback",
    "tutorials/04-saving": "transfer learning, fine-tuning, finetune",
    "tutorials/05-losses": "multi-task, several losses, custom loss, loss function",
    "tutorials/06-several-gpus": "multi gpu, multiple gpus, data parallel",
    "tutorials/07-dqn": "reinforcement learning",
    "howto/data": "class imbalance, imbalanced classes, rare class, oversampling, parquet, "
    "large dataset, memory leak, pytorch dataloader",
    "howto/learning-rate": "lr, learning rate, warmup, decay, cosine, learning rate schedule, "
    "gradient clipping, clip gradients",
    "validation": "confusion matrix, top-5, metrics, class imbalance, wandb, f1 score, "
    "early stopping, best model, save best model",
    "howto/reinforcement-learning": "rom, atari rom, gym, own environment, replay buffer",
    "howto/serving": "serving, serve, deploy, deployment, http, rest, server",
    "howto/debugging": "nan, inf, debug, hang, deadlock, print tensor",
    "tutorials/your-images": "image folder, image folder png, own images, own dataset, "
    "train validation split",
    "tutorials/your-table": "table, csv, csv table, pandas, tabular data, missing values, "
    "categorical features, class weights",
    "tutorials/your-texts": "own texts, text classification, text files",
    "errors": "exceptions, catch errors",
    "dataflow": "data loader, dataloader, pipeline, multiprocessing",
    "augmentors": "data augmentation, augmentation, random crop, bounding boxes",
    "models": "custom layer, own layer, dropout, convolution, regularization",
    "trainers": "tf.data, queue, feed_dict, placeholder",
    "resuming": "resume, resume training, continue training, ctrl-c, preemption, kill, "
    "sigterm, spot instance, reproducible, random seed",
    "runs": "tensorboard, log directory, logs, checkpoint files",
    "weights": "savedmodel, savedmodel export, export, export model, pretrained, npz, "
    "freeze layers, ema, tflite, frozen graph",
    "predicting": "inference, predict, predict new image",
    "distributed": "distributed training, multi node, multiple machines, horovod, "
    "parameter server, scaling, slurm, mpi",
    "learning": "atari, breakout, scores",
    "performance": "benchmark, benchmarks, speed",
    "profiling": "slow, slow training, speed up, profile, throughput, bottleneck, gpu idle, "
    "gpu memory, out of memory, oom",
    "precision": "mixed precision, fp16, float16, bfloat16, xla",
    "migration": "tensorflow 2, tf1, tensorflow 1, old scripts, upgrade, differences, old names",
    "project/releases": "version, release, compatibility",
    "reference/api/saving": "checkpoint, save model, save",
    "reference/api/validation": "early stop, evaluation, accuracy",
    "reference/api/schedules": "scheduler, hyperparameter",
    "reference/api/normalization": "batch norm, batch normalization, weight decay",
    "reference/api/files": "lmdb, tfrecord, hdf5",
    "reference/api/several-gpus": "gpu, gpus",
    "reference/api/gradients": "accumulate gradients, adam",
    "examples/a3c": "a3c, a2c, actor critic",
    "examples/dqn": "dqn, deep q learning, deep q network",
    "examples/scripts/GAN-DCGAN": "gan, dcgan",
}


def add(app, name, content):
    """Puts the words of a page in front of its text."""
    entries = [entry for entry in WORDS.get(name, "").split(", ") if entry]
    if not entries:
        return
    words = sorted(set(re.findall("[a-z0-9]+", " ".join(entries))))
    text = f".. index:: {', '.join(f'! {entry}' for entry in entries)}\n\n"
    text += f".. meta::\n   :keywords: {', '.join(words)}\n\n"
    if Path(app.env.doc2path(name)).suffix != ".rst":
        text = f"```{{eval-rst}}\n{text}```\n\n"
    content[0] = text + content[0]


def check(app, env):
    """Warns of a page that is not there, which ends `make docs`."""
    from sphinx.util.logging import getLogger

    for name in sorted(set(WORDS) - set(env.found_docs)):
        getLogger(__name__).warning("words.py names %s, which is no page", name, type="words")


def setup(app):
    app.add_config_value("words", WORDS, "env")  # all pages are read again when they change
    app.connect("source-read", add)
    app.connect("env-updated", check)
    return {"parallel_read_safe": True}
