"""Inputs that provide a part of what the model takes; the rest are placeholders."""

from typing import Any, List, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_names

from .base import InputSource
from .feed import make_placeholders


def remap_input_source(input: InputSource, names: Sequence[str]) -> InputSource:
    """Makes a source provide the inputs of these names only; the others become placeholders.

    The placeholders are named like the inputs. A run that needs one of them must feed it. Of a
    `StagingInput`, remap the whole: what it wraps is taken ahead, without a feed.

    Args:
      input: not set up yet; its components are those of `names`, in this order.
      names: names of inputs of the model.

    Returns:
      `input` itself, whose class is now `Remapped<its class>`, derived from that.
    """
    if input.setup_done():
        raise RuntimeError("remap_input_source comes before the setup of the input source.")
    kind: Any = type(input)
    input.__class__ = type(f"Remapped{kind.__name__}", (_Remapped, kind), {})
    input.__dict__["_remapped_names"] = as_names("remap_input_source", "names", names)
    return input


class _Remapped(InputSource):
    """Stands before the class of a source, and shows that a part of the signature."""

    _remapped_names: List[str]

    def _setup(self, input_signature: List[tf.TensorSpec]) -> None:
        super()._setup(get_sublist_by_names(input_signature, self._remapped_names))
        rest = [spec for spec in input_signature if spec.name not in self._remapped_names]
        with tf.name_scope(None):
            self._others = dict(zip([spec.name for spec in rest], make_placeholders(rest)))
        self._all_names = [spec.name for spec in input_signature]

    def _get_input_tensors(self) -> Sequence[tf.Tensor]:
        tensors = dict(zip(self._remapped_names, super()._get_input_tensors()), **self._others)
        return [tensors[name] for name in self._all_names]


def get_tensors_inputs(
    placeholders: Sequence[tf.Tensor], tensors: Sequence[tf.Tensor], names: Sequence[str]
) -> List[tf.Tensor]:
    """Returns the placeholders of all inputs, with those of some names replaced by tensors."""
    replaced = get_sublist_by_names(placeholders, names)
    by_id = {id(placeholder): tensor for placeholder, tensor in zip(replaced, tensors)}
    return [by_id.get(id(placeholder), placeholder) for placeholder in placeholders]


def get_sublist_by_names(lst: Sequence[Any], names: Sequence[str]) -> List[Any]:
    """Returns the tensors or other objects of these names, in the order of the names."""
    by_name = {item.op.name if isinstance(item, tf.Tensor) else item.name: item for item in lst}
    missing = [name for name in names if name not in by_name]
    if missing:
        raise ValueError(f"There is no input named {missing[0]!r}, only {', '.join(by_name)}.")
    return [by_name[name] for name in names]
