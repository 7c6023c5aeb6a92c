"""Holds every datapoint against the inputs of the model, before TensorFlow sees it.

Without it a None becomes NaN, a float becomes an integer, and a missing component goes unnoticed.
The first datapoint is looked at as a whole and all that is wrong with it is said at once; of the
later ones, each is right if its arrays have the dtype and shape of one that was right before, which
costs a few hundred nanoseconds a component.
"""

from collections.abc import Mapping
from typing import Any, List, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf

from .component import Component

__all__ = ["DatapointChecker"]


class DatapointChecker:
    """A function from a datapoint to the arrays to be fed, one for each input of the model.

    Right arrays are returned as they are. float64 becomes float32, int64 becomes int32 and the
    like, where all values fit, and the log says so once; bool and integers are widened as numpy's
    safe casts do. A user's NaN passes.

    Args:
      signature: a `tf.TensorSpec` with a name for each component.
    """

    def __init__(self, signature: Sequence[tf.TensorSpec]) -> None:
        self._components = [Component(index, spec) for index, spec in enumerate(signature)]
        self._names = [each.name for each in self._components]
        self._index = 0

    def __call__(self, datapoint: Any) -> List[np.ndarray]:
        """Returns the arrays to feed, in the order of the signature.

        Args:
          datapoint: a list or tuple of arrays, numbers or (nested) lists, or a dict of them by
            input name.

        Raises:
          TypeError: a component is None, holds objects, or would change its kind (float to int, str
            to number).
          ValueError: the number of components, a shape, or the range of a number is wrong.
        """
        values = self._values(datapoint)
        if self._index == 0:
            self._check_all(values)
        arrays = []
        for component, value in zip(self._components, values):
            if (
                type(value) is np.ndarray
                and value.shape == component.seen
                and value.dtype == component.dtype
            ):
                arrays.append(value)
            else:
                arrays.append(self._convert(component, value))
        self._index += 1
        return arrays

    def _values(self, datapoint: Any) -> Sequence[Any]:
        if isinstance(datapoint, (list, tuple)):
            if len(datapoint) == len(self._names):
                return datapoint
            got = f"{len(datapoint)} components"
        elif isinstance(datapoint, Mapping):
            if datapoint.keys() == set(self._names):
                return [datapoint[name] for name in self._names]
            got = f"components named {sorted(map(str, datapoint))}"
        else:
            raise TypeError(
                f"Datapoint {self._index} is {_describe(datapoint)}. A dataflow must yield lists "
                f"(or tuples, or dicts), here with one component for each of {self._names}."
            )
        names = ", ".join(self._names)
        raise ValueError(
            f"Datapoint {self._index} has {got}, the model takes {len(self._names)} ({names}). "
            "Make the model's inputs and the dataflow agree."
        )

    def _check_all(self, values: Sequence[Any]) -> None:
        errors = []
        for component, value in zip(self._components, values):
            try:
                self._convert(component, value)
            except (TypeError, ValueError) as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise type(errors[0])("\n".join(str(each) for each in errors)) from errors[0]

    def _convert(self, component: Component, value: Any) -> np.ndarray:
        try:
            return component.convert(value)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"Datapoint {self._index}, {component.describe()}: the model takes "
                f"{component.expected}, the dataflow gave {_describe(value)}: {error}."
            ) from error


def _describe(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, (list, tuple, dict, str, bytes)):
        return f"a {type(value).__name__} of length {len(value)}"
    return f"a {type(value).__name__}"
