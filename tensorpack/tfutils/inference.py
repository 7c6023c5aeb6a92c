"""Builds a model for inference and loads its weights, in a session of its own."""

from typing import Any, Callable, Iterable, List, NamedTuple, Tuple

from tensorpack.compat import tfv1 as tf

from .dependency import ancestors
from .tower import TowerContext
from .varmanip import weights_of


class Inference(NamedTuple):
    """A tower for inference: the tensors to feed and to compute, and a session of its graph."""

    inputs: List[tf.Tensor]
    outputs: List[tf.Tensor]
    sess: tf.Session


def build_inference(config: Any) -> Inference:
    """Builds an inference tower without a name, and gives its variables their values.

    The caller calls `close_session`.
    """
    with graph_of(config).as_default():
        tensors = [tf.placeholder(s.dtype, s.shape, s.name) for s in config.input_signature]
        inputs, outputs = build_tower(config, lambda: tensors)
        return Inference(inputs, outputs, open_session(config, inputs, outputs))


def graph_of(config: Any) -> tf.Graph:
    """Returns the graph that a `PredictConfig` asks for: a new one, or the default graph."""
    return tf.Graph() if config.create_graph else tf.get_default_graph()


def build_tower(
    config: Any, make_tensors: Callable[[], Iterable[tf.Tensor]], name: str = ""
) -> Tuple[List[tf.Tensor], List[tf.Tensor]]:
    """Builds an inference tower in the default graph; returns the tensors to feed and to compute.

    Args:
      make_tensors: returns what the tower function is called with; called in the scopes of the
        tower.
      name: name scope of the tower. One without a name has to be the first; others share variables.
    """
    with TowerContext(name, is_training=False), config.computing.scope():
        config.tower_func(*make_tensors())
    handle = config.tower_func.towers[-1]
    return handle.get_tensors(config.input_names), handle.get_tensors(config.output_names)


def open_session(
    config: Any, inputs: Iterable[tf.Tensor], outputs: Iterable[tf.Tensor]
) -> tf.Session:
    """Returns a session of the default graph whose variables have been initialised and loaded.

    Raises:
      ValueError: the outputs need a weight, a trainable or model variable, that there is no value
        for; or a value does not fit. What a `SessionInit` was told to ignore, and what a subclass
        of a user does not report, counts as found.
    """
    sess, outputs = config.session_creator.create_session(), list(outputs)
    try:
        if sess.graph is not tf.get_default_graph():
            raise ValueError(
                "The session of session_creator is of another graph than the model, which "
                "PredictConfig(create_graph=False) builds in the default graph."
            )
        config.session_init.init(sess)
        used, missing = set(ancestors(outputs, fed=inputs)), config.session_init.missing
        weights = weights_of(outputs[0].graph).items()
        lacking = [name for name, each in weights if name in missing and each.op in used]
        if lacking:
            raise ValueError(
                f"{', '.join(each.name for each in outputs)} cannot be computed: there is no value "
                f"to load for {', '.join(sorted(lacking))}. Give the weights of this very model, "
                "or name in `ignore` what is to keep its initial value."
            )
    except BaseException:
        close_session(config.session_creator, sess)
        raise
    return sess


def close_session(creator: Any, sess: tf.Session) -> None:
    """Closes a session that a creator has given, unless it is another's (`ReuseSessionCreator`)."""
    if not getattr(creator, "reuses", False):
        sess.close()
