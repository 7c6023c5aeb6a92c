"""Shows a tensor as an image, in files and in the monitors."""

import os
from typing import Any, Callable, Optional

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_op_tensor_name
from tensorpack.utils import logger
from tensorpack.utils.atomic import write_atomic

from ._images import as_images, to_png
from .base import Callback


class DumpTensorAsImage(Callback):
    """Writes a tensor as images when triggered, which is every epoch by default.

    The files are `{prefix}-ep{epoch:03d}.png` in the log directory, and for further images
    `{prefix}-ep{epoch:03d}-{i}.png` from i = 1. The monitors get them as the image `{prefix}`. The
    tensor is computed in a run of its own, so it must not need a datapoint; a variable does not.

    Args:
      tensor_name: name of the tensor or variable.
      prefix: of the names; the name of the tensor by default, in files with `-` for `/`.
      map_func: turns the value into images, `[H, W]`, `[H, W, C]` or `[N, H, W, C]` with C of 1, 3
        (RGB) or 4, or a list of `[H, W, C]`; by default the value itself is taken.
      scale: the images are multiplied with it, and clipped to [0, 255].

    Raises:
      RuntimeError: there is no log directory, when it is set up.
    """

    def __init__(
        self,
        tensor_name: str,
        prefix: Optional[str] = None,
        map_func: Optional[Callable[[Any], Any]] = None,
        scale: float = 255,
    ) -> None:
        op_name, self._tensor_name = get_op_tensor_name(tensor_name)
        self._prefix = op_name if prefix is None else prefix
        self._map_func = map_func
        self._scale = scale

    def _setup_graph(self) -> None:
        self._tensor = self.get_tensors_maybe_in_tower([self._tensor_name])[0]
        self._directory = logger.get_logger_dir() or ""
        if not self._directory:
            raise RuntimeError(f"{self} writes to the log directory: set_logger_dir() first.")

    def _trigger(self) -> None:
        value = tf.get_default_session().run(self._tensor)
        if self._map_func is not None:
            value = self._map_func(value)
        images = as_images(self._prefix, np.asarray(value) * self._scale)
        stem = f"{self._prefix.replace('/', '-')}-ep{self.epoch_num:03d}"
        for i, image in enumerate(images):
            name = f"{stem}-{i}.png" if i else f"{stem}.png"
            write_atomic(os.path.join(self._directory, name), to_png(image))
        self.trainer.monitors.put_image(self._prefix, images)


DumpParamAsImage = DumpTensorAsImage  # the name of 2017
