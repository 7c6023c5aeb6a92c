"""What the worker process of a child runs; TensorFlow is not loaded for it."""

import time


def work():
    """Stays until it is told to leave."""
    while True:
        time.sleep(0.1)
