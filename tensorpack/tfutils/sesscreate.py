"""How sessions are made: a creator has one method, `create_session()`."""

import os
from contextlib import ExitStack
from typing import Callable, List, Optional, Sequence, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .common import get_default_sess_config
from .dependency import ancestors
from .devices import have_gpus
from .precision import ComputeOptions

# An initialiser that waits for one of these waits for ever: the input has no data yet.
BLOCKING_OPS = frozenset(
    "IteratorGetNext QueueDequeueManyV2 QueueDequeueUpToV2 QueueDequeueV2 Unstage".split()
)

# A new session opens one or two on the CPU, and some for each GPU.
_FILES_OF_A_SESSION = 32


class NewSessionCreator(tf.train.SessionCreator):
    """Makes a session, and initialises its variables and tables.

    Args:
      target: where TensorFlow runs, "" for this process.
      graph: by default the default graph at the time of `create_session`. A `tf.ConfigProto` is
        taken as `config`, which is the second argument in later scripts.
      config: a `tf.ConfigProto`; by default `get_default_sess_config()`.
      precision: "fp32", "bf16" or "fp16", see `ComputeOptions`; None for what `config` says.
      xla: whether XLA compiles what it can; False for what `config` says.

    Attributes:
      computing: the `ComputeOptions` that `precision` and `xla` make.
    """

    def __init__(
        self,
        target: str = "",
        graph: Union[tf.Graph, tf.ConfigProto, None] = None,
        config: Optional[tf.ConfigProto] = None,
        precision: Optional[str] = None,
        xla: bool = False,
    ) -> None:
        if isinstance(graph, tf.ConfigProto) and config is None:
            graph, config = None, graph
        self.target, self.graph = target, graph
        self.config = get_default_sess_config() if config is None else config
        self.computing = ComputeOptions(precision, xla)
        if self.computing.is_set:
            self.config = self.computing.apply_to(self.config)

    def create_session(self) -> tf.Session:
        """Returns the new session. The graph must not be finalised yet.

        Raises:
          OSError: this process may not open as many files as a session needs.
          RuntimeError: `precision` is "fp16", and there is no GPU.
        """
        _check_files()
        self.computing.check()
        graph = tf.get_default_graph() if self.graph is None else self.graph
        with graph.as_default():
            first = tf.variables_initializer(self._select(tf.global_variables()))
            local = tf.variables_initializer(self._select(tf.local_variables()))
            then = [local, tf.tables_initializer()]
        _warn_of_blocking(graph)
        session = self._connect(graph)
        try:
            session.run(first)
            session.run(then)
        except BaseException:
            session.close()
            raise
        logger.info("Global variables initialized.")
        return session

    def _connect(self, graph: tf.Graph) -> tf.Session:
        """Override to make another session."""
        config = tf.ConfigProto(allow_soft_placement=not have_gpus())  # towers ask for a GPU
        config.MergeFrom(self.config)
        return tf.Session(target=self.target, graph=graph, config=config)

    def _select(self, variables: Sequence[tf.Variable]) -> Sequence[tf.Variable]:
        """Override to leave variables to another process that initialises them."""
        return variables


def _check_files() -> None:
    """TensorFlow aborts the whole process where it cannot open a file, so this tries before it."""
    with ExitStack() as opened:
        for _ in range(_FILES_OF_A_SESSION):
            opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))


def _warn_of_blocking(graph: tf.Graph) -> None:
    keys = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES]
    variables = [var for key in keys for var in graph.get_collection(key)]
    blocking = _blocking_ops([var.initializer for var in variables])
    for var in variables if blocking else []:
        waits_for = _blocking_ops([var.initializer])
        if waits_for:
            logger.warn(
                f"The initial value of {var.op.name} waits for {waits_for[0]}, which has no "
                "data before training starts: this may wait for ever."
            )


def _blocking_ops(ops: List[tf.Operation]) -> List[str]:
    return [op.name for op in ancestors(ops) if op.type in BLOCKING_OPS]


class ReuseSessionCreator(tf.train.SessionCreator):
    """Gives a session that exists already, as it is."""

    reuses = True  # who asks for it does not close it

    def __init__(self, sess: tf.Session) -> None:
        self.sess = sess

    def create_session(self) -> tf.Session:
        """Returns the session."""
        return self.sess


class SessionCreatorAdapter(tf.train.SessionCreator):
    """Puts the sessions of another creator through a function, such as a debugger's wrapper."""

    def __init__(
        self, session_creator: tf.train.SessionCreator, func: Callable[[tf.Session], tf.Session]
    ) -> None:
        self._creator, self._func = session_creator, func
        self.reuses = getattr(session_creator, "reuses", False)

    def create_session(self) -> tf.Session:
        """Returns what the function makes of a new session."""
        return self._func(self._creator.create_session())
