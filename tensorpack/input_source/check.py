"""Checks every datapoint against the inputs of the model.

Without it a None becomes NaN, a float becomes an integer, a missing component is not noticed.
"""

from collections.abc import Mapping
from typing import Any, List, Optional, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.fed_input import NOT_A_BATCH, FedInput, describe
from tensorpack.utils import logger


class DatapointChecker:
    """A function from a datapoint to the arrays to be fed, one for each input of the model.

    Right arrays are returned as they are, others are converted as `tfutils.fed_input` does. All
    errors of a datapoint are reported together. An array passes at once if it has the dtype and
    shape of an earlier one that passed.

    Args:
      signature: a `tf.TensorSpec` with a name for each component.
      cut: whether components after those of the signature are left out, with one warning.
    """

    def __init__(self, signature: Sequence[tf.TensorSpec], cut: bool = False) -> None:
        self._components = [
            FedInput(f"component {index} ({spec.name!r})", spec.dtype, spec.shape)
            for index, spec in enumerate(signature)
        ]
        self._names = [spec.name for spec in signature]
        self._cut, self._cut_logged, self._index = cut, False, 0

    def __call__(self, datapoint: Any) -> List[np.ndarray]:
        """Returns the arrays to feed, in the order of the signature.

        A datapoint is a list or tuple of arrays, numbers or (nested) lists, or a dict of them by
        input name. TypeError if a component is None, holds objects, or would change its kind (float
        to int); ValueError if their number, a shape, or the range of a number is wrong.
        """
        arrays: List[np.ndarray] = []
        messages: List[str] = []
        first: Optional[Exception] = None
        for component, value in zip(self._components, self._values(datapoint)):
            try:
                arrays.append(component.feed(value, "the dataflow"))
            except (TypeError, ValueError) as error:
                first = first or error
                messages.append(f"Datapoint {self._index}, {error}")
        if first is not None:
            if all(NOT_A_BATCH in message for message in messages):
                messages.append("BatchData(flow, size) makes batches.")
            raise type(first)("\n".join(messages)) from first.__cause__
        self._index += 1
        return arrays

    def _values(self, datapoint: Any) -> Sequence[Any]:
        if isinstance(datapoint, (list, tuple)):
            if len(datapoint) == len(self._names):
                return datapoint
            if self._cut and len(datapoint) > len(self._names):
                if not self._cut_logged:
                    self._cut_logged = True
                    logger.warning(
                        f"Datapoints have {len(datapoint)} components, the model takes "
                        f"{len(self._names)} ({', '.join(self._names)}): those after them are "
                        "left out."
                    )
                return datapoint  # the caller takes as many as there are inputs
            got = f"{len(datapoint)} components"
        elif isinstance(datapoint, Mapping):
            if datapoint.keys() == set(self._names):
                return [datapoint[name] for name in self._names]
            got = f"components named {sorted(map(str, datapoint))}"
        else:
            raise TypeError(
                f"Datapoint {self._index} is {describe(datapoint)}. A dataflow must yield lists "
                f"(or tuples, or dicts), here with one component for each of {self._names}."
            )
        raise ValueError(
            f"Datapoint {self._index} has {got}, the model takes {len(self._names)} "
            f"({', '.join(self._names)}). Make the model's inputs and the dataflow agree."
        )
