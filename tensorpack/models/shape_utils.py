"""Shapes of which a part is known while the graph is built and the rest when it runs."""

from typing import Any, Callable, List, Optional

from tensorpack.compat import tfv1 as tf


class StaticDynamicAxis:
    """The size of one axis, in both forms.

    Args:
      static: the size, or None if it is unknown until the graph runs.
      dynamic: the size as an int32 scalar tensor, or as a number where it is known.
    """

    def __init__(self, static: Optional[int], dynamic: Any) -> None:
        self.static = static
        self.dynamic = dynamic

    def apply(self, f: Callable[[Any], Any]) -> "StaticDynamicAxis":
        """Returns the axis of size `f(size)`; `f` takes a number or a tensor, and is called once.

        The size becomes known if `f` returns a number.
        """
        size = f(self.dynamic if self.static is None else self.static)
        return StaticDynamicAxis(None if tf.is_tensor(size) else size, size)


class StaticDynamicShape:
    """The shape of a tensor, which `apply` changes axis by axis into that of another one::

        shape = StaticDynamicShape(images)             # [None, 32, None, 3]
        shape.apply(1, lambda size: size * 2)
        shape.apply(2, lambda size: size * 2)
        larger = tf.reshape(values, shape.get_dynamic())
        larger.set_shape(shape.get_static())           # [None, 64, None, 3]

    Args:
      tensor: of known rank.
    """

    def __init__(self, tensor: tf.Tensor) -> None:
        static = tensor.shape.as_list()
        dynamic = tf.unstack(tf.shape(tensor), num=len(static))
        self._axes = [StaticDynamicAxis(*sizes) for sizes in zip(static, dynamic)]

    @property
    def ndims(self) -> int:
        """The number of axes."""
        return len(self._axes)

    def apply(self, axis: int, f: Callable[[Any], Any]) -> None:
        """Changes the size of one axis to `f(size)`, see `StaticDynamicAxis.apply`."""
        self._axes[axis] = self._axes[axis].apply(f)

    def get_static(self) -> List[Optional[int]]:
        """Returns the sizes that are known; None for the others."""
        return [axis.static for axis in self._axes]

    def get_dynamic(self, axis: Optional[int] = None) -> Any:
        """Returns the shape as an int32 tensor, or the size of one axis."""
        if axis is not None:
            return self._axes[axis].dynamic
        return tf.stack([axis.dynamic for axis in self._axes])
