"""R18: the bare update of the main job against the same update in PyTorch and in JAX.

Each starts from the same weights, on the same batch, and its first losses must be ours.
"""

import _update
from _contest import Contest
from _programs import fresh, on_cores, rate_of
from dqn import update_alone, update_dqn

PEERS = {"torch, compiled": ("torch_update.py", "torch"), "JAX": ("jax_update.py", "jax")}


def against_others(seconds=4.0, cores=(1,), precision=("fp32", "bf16")):
    """The update alone against PyTorch (compiled, channels_last) and JAX (compiled).

    Pinned to so many cores. A peer whose first losses differ from ours fails.
    """
    for kind in precision:
        flags = ["--precision", kind]
        losses = ",".join(map(str, fresh(first_losses, flags)))
        peer_flags = [*flags, "--seconds", seconds, "--losses", losses]
        for count in cores:
            yield Contest(
                f"update, {kind}, {count} core{'s' if count > 1 else ''} / PyTorch and JAX",
                {"run": on_cores(count, fresh, update_dqn, seconds, flags)},
                {
                    name: on_cores(count, rate_of, script, *peer_flags, peer=peer)
                    for name, (script, peer) in PEERS.items()
                },
                target=">= 1",
            )


def first_losses(flags):
    """The costs of the first updates, from the weights of `_update`."""
    from tensorpack.compat import tfv1 as tf

    with update_alone(flags) as (sess, trainer):
        weights = _update.weights()
        for var in tf.global_variables():
            name = var.op.name.rpartition("target/")[2]
            if name in weights:
                var.load(weights[name], sess)
        step = sess.make_callable([sess.graph.get_tensor_by_name("cost:0"), trainer.train_op])
        return [float(step()[0]) for _ in range(_update.CHECKED)]
