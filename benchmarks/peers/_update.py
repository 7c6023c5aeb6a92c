"""The update of R18: its weights and its batch.

numpy only: the peer runs it in an environment of its own. The layouts are TensorFlow's: kernels
are `[rows, columns, inputs, outputs]`, matrices `[inputs, outputs]`.
"""

import numpy as np

BATCH, ACTIONS, DISCOUNT = 64, 4, 0.99
LEARNING_RATE, BETAS, EPSILON, MAX_NORM = 1e-3, (0.9, 0.999), 1e-3, 10.0
SLOPE = 0.01  # of the features
CONVOLUTIONS = {"conv0": (8, 4, 32, 4), "conv1": (4, 32, 64, 2), "conv2": (3, 64, 64, 1)}
MATRICES = {"fc0": (11 * 11 * 64, 512), "fct": (512, ACTIONS)}
INPUTS = (
    ((BATCH, 5, 84, 84), np.uint8),  # frames: the first four and the last four are states
    ((BATCH,), np.int64),  # actions
    ((BATCH,), np.float32),  # rewards
    ((BATCH,), bool),  # whether the episode ended
)


def random_arrays(specs):
    """Arrays of shapes and types: bytes, zeros and ones."""
    rng = np.random.RandomState(0)
    return [
        rng.randint(256 if dtype == np.uint8 else 2, size=shape).astype(dtype)
        for shape, dtype in specs
    ]


def shapes():
    """Of the variables, by name."""
    made = {}
    for name, (size, inputs, outputs, _) in CONVOLUTIONS.items():
        made[f"{name}/W"] = (size, size, inputs, outputs)
        made[f"{name}/b"], made[f"{name}/alpha"] = (outputs,), ()
    for name, shape in MATRICES.items():
        made[f"{name}/W"], made[f"{name}/b"] = shape, shape[1:]
    return made


def weights():
    """The variables by name: normal kernels, biases of zero, one slope of each PReLU."""
    rng, made = np.random.RandomState(1), {}
    for name, shape in shapes().items():
        kernel = rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[:-1]))
        value = kernel if len(shape) > 1 else np.full(shape, 0.0 if shape else 0.001)
        made[name] = value.astype(np.float32)
    return made
