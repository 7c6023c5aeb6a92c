"""R18: the bare update of the main job against the same update in PyTorch and in JAX.

Each starts from the same weights, on the same batch, and its first losses must be ours. What it
is to a core: the floating-point operations of an update against those of a product of large
matrices in the same process.
"""

import itertools
import sys

import numpy as np
from _contest import Contest, itself
from _programs import HERE, fresh, on_cores, rate_of
from dqn import update_alone

sys.path.insert(0, str(HERE / "peers"))

import _update
from _clock import per_second

SIDE = 2048  # of the matrices
PEERS = {
    "torch": ("torch_update.py", "torch", []),
    "torch, compiled": ("torch_update.py", "torch", ["--compiled", 1]),
    "JAX": ("jax_update.py", "jax", []),
}


def against_others(seconds=5.0, cores=(1, 2), precision=("fp32", "bf16")):
    """The update alone against PyTorch (channels_last; as it is and compiled) and JAX (compiled).

    Pinned to one core and to two. A peer whose first losses differ from ours fails.
    """
    for each in precision:
        losses = fresh(first_losses, each)
        for count in cores:
            yield from _of(each, count, seconds, ",".join(map(str, losses)))


def _of(precision, cores, seconds, losses):
    flags = ["--precision", precision, "--seconds", seconds, "--losses", losses]
    shares = []

    def ours():
        rate, share = fresh(update, precision, seconds)
        shares.append(100 * share)
        return rate

    where = f"{precision}, {cores} core{'s' if cores > 1 else ''}"
    yield Contest(
        f"update, {where} / the best of PyTorch and JAX",
        {"run": on_cores(cores, ours)},
        {
            name: on_cores(cores, rate_of, script, *flags, *more, peer=peer)
            for name, (script, peer, more) in PEERS.items()
        },
        target=">= 1",
    )
    what = f"update, {where}, of what a product of matrices reaches"
    yield Contest(what, {"share": shares}, unit="%", judge=itself)


def first_losses(precision):
    """The costs of the first updates."""
    with update_alone(["--precision", precision]) as (sess, trainer):
        load(sess)
        step = sess.make_callable([sess.graph.get_tensor_by_name("cost:0"), trainer.train_op])
        return [float(step()[0]) for _ in range(_update.CHECKED)]


def update(precision, seconds):
    """Updates per second, and the share of what a product of matrices reaches."""
    from tensorpack.compat import tfv1 as tf

    with update_alone(["--precision", precision]) as (sess, trainer):
        rate = _update.measure(sess.make_callable(trainer.train_op), seconds)
        cost = sess.graph.get_tensor_by_name("cost:0")
        operations = _count([cost, *tf.gradients(cost, tf.trainable_variables())])
        matrix = np.random.RandomState(0).rand(SIDE, SIDE)
        matrix = tf.constant(matrix, tf.bfloat16 if precision == "bf16" else tf.float32)
        kept = tf.get_variable("square", initializer=matrix, use_resource=True)
        product = sess.make_callable(tf.matmul(kept, kept).op)
        sess.run(kept.initializer)
        peak = 2 * SIDE**3 * per_second((product() for _ in itertools.count()), seconds / 4)
    return rate, rate * operations / peak


def _count(outputs):
    """Two for each multiplication of the convolutions and matrix products up to these tensors."""
    from tensorpack.tfutils.dependency import ancestors

    total = 0
    for op in ancestors(outputs):
        if op.type.startswith("Conv2D"):  # or one of its two gradients
            image = op.outputs[0] if op.type == "Conv2D" else op.inputs[2]
            kernel = op.outputs[0] if op.type.endswith("Filter") else op.inputs[1]
            total += 2 * image.shape.num_elements() * kernel.shape[:-1].num_elements()
        elif op.type == "MatMul":  # m x k, k x n and m x n
            sizes = [each.shape.num_elements() for each in [*op.inputs, *op.outputs]]
            total += 2 * round(np.prod(sizes, dtype=float) ** 0.5)
    return total


def load(sess):
    """Sets the variables of both networks."""
    from tensorpack.compat import tfv1 as tf

    weights = _update.weights()
    for each in tf.global_variables():
        name = each.op.name.rpartition("target/")[2]
        if name in weights:
            each.load(weights[name], sess)
