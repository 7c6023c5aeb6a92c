"""The update of the main job in JAX, compiled: what R18 is held against. Prints updates per second.

.venv-peer-jax/bin/python benchmarks/peers/jax_update.py [--precision bf16]
"""

import _update
import jax
from _update import BATCH, BETAS, DISCOUNT, EPSILON, args_of, check_and_measure
from jax import numpy as jnp

LAYOUT = ("NHWC", "HWIO", "NHWC")


def values(given, states):
    """The values of all actions, float32 `[B, A]`; computed in the type of the states."""
    cast = {name: each.astype(states.dtype) for name, each in given.items()}
    x = states
    for name, (_, _, _, stride) in _update.CONVOLUTIONS.items():
        kernel = cast[f"{name}/W"] / 255 if name == "conv0" else cast[f"{name}/W"]
        x = jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=LAYOUT
        )
        x += cast[f"{name}/b"]
        x = jnp.where(x > 0, x, cast[f"{name}/alpha"] * x)
    x = x.reshape(BATCH, -1) @ cast["fc0/W"] + cast["fc0/b"]
    x = jnp.where(x > 0, x, _update.SLOPE * x)
    return (x @ cast["fct/W"] + cast["fct/b"]).astype(jnp.float32)


def loss_of(online, target, dtype, frames, action, reward, over):
    """The cost of Double-DQN."""
    images = frames.transpose(0, 2, 3, 1).astype(dtype)
    state, following = images[..., :4], images[..., 1:]
    rows = jnp.arange(BATCH)
    then = values(target, following)[rows, values(online, following).argmax(1)]
    wanted = jnp.clip(reward, -1, 1) + jnp.where(over, 0, DISCOUNT * then)
    error = jax.lax.stop_gradient(wanted) - values(online, state)[rows, action]
    size = jnp.abs(error)
    return jnp.mean(jnp.where(size <= 1, error**2 / 2, size - 0.5))


def adam(grads, weights, means, squares, count):
    """What TensorFlow's Adam makes of the weights and its two averages."""
    rate = _update.LEARNING_RATE * jnp.sqrt(1 - BETAS[1] ** count) / (1 - BETAS[0] ** count)
    means = jax.tree.map(lambda m, g: m + (1 - BETAS[0]) * (g - m), means, grads)
    squares = jax.tree.map(lambda v, g: v + (1 - BETAS[1]) * (g * g - v), squares, grads)

    def moved(weight, mean, square):
        return weight - rate * mean / (jnp.sqrt(square) + EPSILON)

    return jax.tree.map(moved, weights, means, squares), means, squares


def main():
    """Measures and prints."""
    args = args_of(__doc__)
    dtype = jnp.bfloat16 if args.precision == "bf16" else jnp.float32

    @jax.jit
    def step(state, target, batch):
        online, means, squares, count = state
        cost, grads = jax.value_and_grad(loss_of)(online, target, dtype, *batch)
        norm = jnp.sqrt(sum(jnp.sum(each * each) for each in jax.tree.leaves(grads)))
        scale = _update.MAX_NORM / jnp.maximum(norm, _update.MAX_NORM)
        grads = jax.tree.map(lambda each: each * scale, grads)
        return (*adam(grads, online, means, squares, count), count + 1), cost

    target = {name: jnp.asarray(each) for name, each in _update.weights().items()}
    batch = [jnp.asarray(each) for each in _update.random_arrays(_update.INPUTS)]
    zeros = jax.tree.map(jnp.zeros_like, target)
    state = target, zeros, zeros, jnp.float32(1)

    def update():
        nonlocal state
        state, cost = step(state, target, batch)
        return jax.block_until_ready((state, cost))[1]

    check_and_measure(update, args)


if __name__ == "__main__":
    main()
