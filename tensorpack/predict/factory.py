"""Towers that predict with the variables of a training, each built on the first request for it."""

from typing import Any, Callable, Optional, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import InputSource, PlaceholderInput
from tensorpack.tfutils.devices import device_text, tower_device
from tensorpack.tfutils.precision import ComputeOptions
from tensorpack.tfutils.tower import TowerContext, TowerFunc, TowerTensorHandle
from tensorpack.utils import logger

from .base import OnlinePredictor
from .config import tower_func_of


class PredictorFactory:
    """Builds inference towers in the default graph, each once, beside those that are trained.

    Args:
      model: a `ModelDescBase` or a `TowerFunc`, of which a tower has been built that has the
        variables.
      towers: relative GPU ids of the towers, -1 for the CPU, or names of devices.
      vs_name: variable scope of the variables.
      computing: in which precision the towers compute.
      place: from the id or name of a device to what `tf.device` takes.
    """

    def __init__(
        self,
        model: Any,
        towers: Sequence[Union[int, str]],
        vs_name: str = "",
        computing: Optional[ComputeOptions] = None,
        place: Callable[[Union[int, str]], Any] = tower_device,
    ) -> None:
        self._tower_func = model if isinstance(model, TowerFunc) else tower_func_of(model)
        self._towers = list(towers)
        self._vs_name = vs_name
        self._computing = computing or ComputeOptions()
        self._place = place

    def build(
        self, tower_name: str, device: Union[int, str], input: Optional[InputSource] = None
    ) -> TowerTensorHandle:
        """Builds a tower in a name scope and on a device, and returns its handle.

        Args:
          input: where its inputs come from, set up or not; new placeholders by default.
        """
        placed = self._place(device)
        text = device_text(device, placed)
        logger.info(f"Building predictor tower '{tower_name}' on device {text} ...")
        source = PlaceholderInput() if input is None else input
        # the caller may be inside of scopes of its own
        with tf.name_scope(None), tf.device(placed):
            if not source.setup_done():
                source.setup(self._tower_func.input_signature)
            with TowerContext(tower_name, is_training=False, vs_name=self._vs_name):
                with self._computing.scope():
                    self._tower_func(*source.get_input_tensors())
        return self._tower_func.towers[tower_name]

    def has_built(self, tower_name: str) -> bool:
        """Returns whether there is a tower of this name."""
        return tower_name in self._tower_func.towers

    def get_predictor(
        self,
        input_names: Sequence[str],
        output_names: Sequence[str],
        tower: int = 0,
        device: Optional[int] = None,
    ) -> OnlinePredictor:
        """Returns a predictor on one of the towers; builds that if need be.

        Args:
          input_names: names of inputs, or of any tensor of the tower, to be fed.
          output_names: names of the tensors to compute.
          tower: index into `towers`.
          device: a GPU id, or -1 for the CPU, instead of `tower`.
        """
        name, gpu = self._tower_at(tower) if device is None else self._tower_on(device)
        handle = self._tower_func.towers[name] if self.has_built(name) else self.build(name, gpu)
        return OnlinePredictor(handle.get_tensors(input_names), handle.get_tensors(output_names))

    def _tower_at(self, tower: int) -> Tuple[str, Union[int, str]]:
        """The name and the device of a tower."""
        count = len(self._towers)
        if tower >= count:
            logger.warning(
                f"There are {count} predict towers, number {tower} was asked for: "
                f"using number {tower % count}."
            )
        index = tower % count
        return f"towerp{index}", self._towers[index]

    def _tower_on(self, device: int) -> Tuple[str, int]:
        """The name of the tower on a device: one of `towers`, or one beside them."""
        if device in self._towers:
            return f"towerp{self._towers.index(device)}", device
        if device < 0:
            return "towerp-cpu", device
        taken = device < len(self._towers)  # by a tower of that index on another device
        return f"towerp-gpu{device}" if taken else f"towerp{device}", device
