"""Placeholders that are made once in a graph, and found again by their names."""

from tensorpack.compat import tfv1 as tf


def build_or_reuse_placeholder(tensor_spec: tf.TensorSpec) -> tf.Tensor:
    """Returns the default graph's placeholder of a spec's name, which is made at the first call."""
    try:
        found = tf.get_default_graph().get_tensor_by_name(f"{tensor_spec.name}:0")
    except KeyError:
        with tf.name_scope(None):
            return tf.placeholder(tensor_spec.dtype, tensor_spec.shape, tensor_spec.name)
    if found.op.type != "Placeholder" or not tensor_spec.is_compatible_with(found):
        raise ValueError(f"{tensor_spec} has the name of {found}, which is no such placeholder.")
    return found


class InputSpec(tf.TensorSpec):
    """A spec as `InputSource._setup` gets it, which subclasses of scripts ask for a placeholder."""

    def build_placeholder_reuse(self) -> tf.Tensor:
        """Returns the placeholder of this name, see `build_or_reuse_placeholder`."""
        return build_or_reuse_placeholder(self)
