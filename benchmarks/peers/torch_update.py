"""The update of the main job in PyTorch: what R18 is held against. Prints updates per second.

    .venv-peer-torch/bin/python benchmarks/peers/torch_update.py [--precision bf16]

In the layout channels_last, with the fused Adam, autocast for bfloat16, and torch.compile for the
loss and its gradients. Fails unless its first losses are ours.
"""

import itertools
import os

import _update
import numpy as np
import torch
from _clock import parse_args, per_second, print_rate
from _update import BATCH, DISCOUNT
from torch.nn import functional as F

WITHIN = {"fp32": 1e-3, "bf16": 3e-2}  # of our first losses, relative
PADDING = {"conv0": 2, "conv1": (1, 2, 1, 2), "conv2": 1}  # what TensorFlow calls SAME


def parameters():
    """Tensors by name."""
    made = {}
    for name, array in _update.weights().items():
        tensor = torch.from_numpy(array.reshape(array.shape or (1,)))
        if tensor.ndim == 4:
            tensor = tensor.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        made[name] = torch.nn.Parameter(tensor.clone(memory_format=torch.preserve_format))
    return made


def values(given, states):
    """The values of all actions, `[B, A]`."""
    x = states
    for name, (_, _, _, stride) in _update.CONVOLUTIONS.items():
        padding, kernel = PADDING[name], given[f"{name}/W"]
        if name == "conv0":
            kernel = kernel / 255  # and not the images, which are larger
        if not isinstance(padding, int):
            x, padding = F.pad(x, padding), 0
        x = F.conv2d(x, kernel, given[f"{name}/b"], stride, padding)
        x = F.prelu(x, given[f"{name}/alpha"].to(x.dtype))
    x = x.permute(0, 2, 3, 1).reshape(BATCH, -1)
    x = F.leaky_relu(x @ given["fc0/W"] + given["fc0/b"], _update.SLOPE)
    return (x @ given["fct/W"] + given["fct/b"]).float()


def loss_of(online, target, frames, action, reward, over):
    """The cost of Double-DQN."""
    state, following = (
        each.to(torch.float32, memory_format=torch.channels_last)
        for each in (frames[:, :4], frames[:, 1:])
    )
    with torch.no_grad():
        best = values(online, following).argmax(1, keepdim=True)
        then = values(target, following).gather(1, best)[:, 0]
        wanted = reward.clamp(-1, 1) + torch.where(over, 0, DISCOUNT * then)
    found = values(online, state).gather(1, action[:, None])[:, 0]
    return F.huber_loss(found, wanted)


def main():
    """Measures and prints."""
    args = parse_args(__doc__, precision="fp32", seconds=4.0, losses="0.0")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    online, target = parameters(), parameters()
    given = [torch.from_numpy(each) for each in _update.random_arrays(_update.INPUTS)]
    optimizer = torch.optim.Adam(
        online.values(), _update.LEARNING_RATE, _update.BETAS, _update.EPSILON, fused=True
    )
    loss = torch.compile(loss_of)
    count = 0

    def update():
        nonlocal count
        count += 1
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bf16"):
            cost = loss(online, target, *given)
        cost.backward()
        torch.nn.utils.clip_grad_norm_(online.values(), _update.MAX_NORM)
        # TensorFlow adds its epsilon before it corrects the bias of the mean square.
        corrected = (1 - _update.BETAS[1] ** count) ** 0.5
        optimizer.param_groups[0]["eps"] = _update.EPSILON / corrected
        optimizer.step()
        return cost.detach()

    ours = [float(loss) for loss in args.losses.split(",")]
    np.testing.assert_allclose([float(update()) for _ in ours], ours, rtol=WITHIN[args.precision])
    updates = (update() for _ in itertools.count())
    print_rate("updates", per_second(updates, args.seconds, warm_up=2.0))


if __name__ == "__main__":
    main()
