"""R18: the bare update of the main job against the same update in a compiled PyTorch.

Both start from the same weights, on the same batch, and the first losses must be equal.
"""

import _update
from _contest import Contest
from _programs import fresh, on_cores, rate_of
from dqn import update_alone, update_dqn

CHECKED = 3  # updates, whose losses are compared


def against_torch(seconds=4.0, cores=(1,), precision=("fp32", "bf16")):
    """The update alone against PyTorch (compiled, channels_last).

    Pinned to so many cores. It fails if the first losses differ.
    """
    for kind in precision:
        flags = ["--precision", kind]
        losses = ",".join(map(str, fresh(first_losses, flags)))
        torch = ["torch_update.py", *flags, "--seconds", seconds, "--losses", losses]
        for count in cores:
            yield Contest(
                f"update, {kind}, {count} core{'s' if count > 1 else ''} / compiled PyTorch",
                {"run": on_cores(count, fresh, update_dqn, seconds, flags)},
                {"PyTorch": on_cores(count, rate_of, *torch, peer="torch")},
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
        return [float(step()[0]) for _ in range(CHECKED)]
