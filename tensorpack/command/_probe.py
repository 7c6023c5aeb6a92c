"""Imports TensorFlow and trains a small model, for `tensorpack doctor`, in a process of its own.

Prints one line of JSON for TensorFlow and one for the training, so that a crash of either leaves
what was found before it.
"""

import json
import os
import sys
import time
from typing import Any, Dict


def describe_tensorflow() -> Dict[str, Any]:
    """Returns the version, whether it is built for CUDA, and the GPUs that it can use."""
    begin = time.monotonic()
    from tensorpack.compat import tfv1 as tf

    seconds = time.monotonic() - begin
    devices = tf.config.experimental.list_physical_devices("GPU")
    return {
        "version": tf.__version__,
        "import_seconds": seconds,
        "cuda": bool(tf.test.is_built_with_cuda()),
        "gpus": [each.name for each in devices],
    }


def main() -> None:
    """Prints what is found; the argument is for how many seconds to train, 0 for not at all."""
    seconds = float(sys.argv[1])
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # logs and bars go to standard error
    output.write(json.dumps(describe_tensorflow()) + "\n")
    output.flush()
    if seconds:
        from ._probe_training import train  # only now, for its imports may crash

        output.write(json.dumps(train(seconds)) + "\n")
        output.flush()


if __name__ == "__main__":
    main()
