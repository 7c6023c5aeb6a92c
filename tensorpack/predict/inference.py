"""Builds a model for inference and loads its weights, in a session of its own."""

from typing import Any, Callable, Iterable, List, Optional, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source.feed import make_placeholders
from tensorpack.tfutils.dependency import ancestors
from tensorpack.tfutils.tower import TowerContext
from tensorpack.tfutils.varmanip import weights_of


def graph_of(config: Any) -> tf.Graph:
    """Returns the graph that a `PredictConfig` asks for: a new one, or the default graph."""
    return tf.Graph() if config.create_graph else tf.get_default_graph()


def build_tower(
    config: Any, name: str = "", make_inputs: Optional[Callable[[], Iterable[tf.Tensor]]] = None
) -> Tuple[List[tf.Tensor], List[tf.Tensor]]:
    """Builds an inference tower in the default graph; returns the tensors to feed and to compute.

    Args:
      name: name scope of the tower. One without a name has to be the first; others share variables.
      make_inputs: returns what the tower function is called with, in the scopes of the tower; by
        default placeholders.
    """
    with TowerContext(name, is_training=False), config.computing.scope():
        inputs = make_inputs() if make_inputs else make_placeholders(config.input_signature)
        config.tower_func(*inputs)
    handle = config.tower_func.towers[-1]
    return handle.get_tensors(config.input_names), handle.get_tensors(config.output_names)


def open_session(
    config: Any, inputs: Iterable[tf.Tensor], outputs: Iterable[tf.Tensor]
) -> tf.Session:
    """Returns a session of the default graph whose variables have been initialised and loaded.

    Raises:
      ValueError: the outputs need a weight, a trainable or model variable, that there is no value
        for; or a value does not fit. What a `SessionInit` was told to ignore, and what a subclass
        of a user does not report, counts as loaded.
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
        weights = weights_of(sess.graph).items()
        names = [name for name, var in weights if name in missing and var.op in used]
        if names:
            raise ValueError(
                f"{', '.join(tensor.name for tensor in outputs)} cannot be computed: there is no "
                f"value to load for {', '.join(sorted(names))}. Give the weights of this very "
                "model, or name in `ignore` what is to keep its initial value."
            )
    except BaseException:
        close_session(config.session_creator, sess)
        raise
    return sess


def close_session(creator: Any, sess: tf.Session) -> None:
    """Closes a session that a creator has given, unless it is another's (`ReuseSessionCreator`)."""
    if not getattr(creator, "reuses", False):
        sess.close()
