"""Builds a model once for each training tower, with shared variables or with copies of them."""

from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.devices import device_text, tower_device
from tensorpack.tfutils.graph import clear_collection, freeze_collection
from tensorpack.tfutils.tower import TowerContext
from tensorpack.tfutils.variables import replicas
from tensorpack.tfutils.varreplace import custom_getter_scope
from tensorpack.utils import logger
from tensorpack.utils.checks import as_list

_KEYS = tf.GraphKeys


class DataParallelBuilder:
    """Calls a function once for each training tower.

    Args:
      towers: relative ids of GPUs.
    """

    def __init__(self, towers: Sequence[int]) -> None:
        self.towers = as_list(self, "towers", towers)

    @staticmethod
    def call_for_each_tower(
        towers: Sequence[int],
        func: Callable[[], Any],
        devices: Optional[Sequence[Any]] = None,
        use_vs: Optional[Sequence[Union[bool, str]]] = None,
    ) -> List[Any]:
        """Calls a function in the context of each of the towers `tower0`, `tower1`, ...

        The towers share the variables of the first one, which alone may make any. A tower that
        `use_vs` gives variables of its own has them under a variable scope. If it is not the first,
        they are copies: local variables, each of which belongs to the variable of the first tower
        that has the same name there, see `tfutils.variables`. The function finds in
        `tf.trainable_variables()` those that its tower is to be trained by; what it adds to
        `LOSSES`, and with variables of its own to `REGULARIZATION_LOSSES`, is not seen by the other
        towers.

        Args:
          towers: relative ids of GPUs.
          func: builds a tower; called without arguments.
          devices: for each tower what `tf.device` takes; by default its GPU, and the CPU where
            there is none.
          use_vs: for each tower whether it has variables of its own, in the variable scope
            `tower{i}`, or the name of another scope; by default none has.

        Returns:
          what the function returns for each tower.
        """
        towers = as_list("call_for_each_tower", "towers", towers)
        count = len(towers)
        devices = [tower_device(gpu) for gpu in towers] if devices is None else list(devices)
        use_vs = [False] * count if use_vs is None else list(use_vs)
        if not towers or len(devices) != count or len(use_vs) != count:
            raise ValueError(
                f"There must be at least one tower, and a device and a variable scope for each: "
                f"got {count} towers, {len(devices)} devices and {len(use_vs)} scopes."
            )
        if count > 1:
            logger.info(f"Training a model of {count} tower")
        results: List[Any] = []
        main_vars: Dict[str, tf.Variable] = {}
        for index, (gpu, device, vs_name) in enumerate(zip(towers, devices, use_vs)):
            text = device_text(gpu, device)
            logger.info(f"Building graph for training tower {index} on device {text} ...")
            vs_name = vs_name if isinstance(vs_name, str) else bool(vs_name)
            context = TowerContext(f"tower{index}", True, index, vs_name)
            with tf.device(device), ExitStack() as stack:
                if index == 0:
                    stack.enter_context(_recording(context, main_vars))
                elif vs_name:
                    stack.enter_context(_copying(context, main_vars))
                else:
                    stack.enter_context(_hidden([_KEYS.LOSSES]))
                stack.enter_context(context)
                results.append(func())
        return results

    build_on_towers = call_for_each_tower


@contextmanager
def _recording(context: TowerContext, variables: Dict[str, tf.Variable]) -> Iterator[None]:
    """Adds the variables that a tower which is built inside of this block asks for, by their names
    within it.
    """
    scopes = [scope for scope in (tf.get_variable_scope().name, context.vs_name) if scope]
    prefixes = ["".join(f"{scope}/" for scope in scopes), f"{context.ns_name}/", ""]

    def record(variable: Any) -> Any:
        if hasattr(variable, "op"):  # not one in parts, whose parts come here, too
            name = variable.op.name
            prefix = max((prefix for prefix in prefixes if name.startswith(prefix)), key=len)
            variables.setdefault(name[len(prefix) :], variable)
        return variable

    def get(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return record(getter(*args, **kwargs))

    def create(creator: Callable[..., Any], **kwargs: Any) -> Any:
        variable = creator(**kwargs)
        keys = kwargs.get("collections")
        return record(variable) if keys is None or _KEYS.GLOBAL_VARIABLES in keys else variable

    with custom_getter_scope(get), tf.variable_creator_scope(create):
        yield


@contextmanager
def _copying(context: TowerContext, main_vars: Dict[str, tf.Variable]) -> Iterator[None]:
    """Makes the variables of a tower that is built inside of this block copies of the main ones."""
    created = set()  # the ids of those that would be global ones

    def create(creator: Callable[..., Any], **kwargs: Any) -> Any:
        keys = kwargs.get("collections")
        keys = [_KEYS.GLOBAL_VARIABLES] if keys is None else list(keys)
        if _KEYS.GLOBAL_VARIABLES not in keys:
            return creator(**kwargs)
        keys = [key for key in keys if key != _KEYS.GLOBAL_VARIABLES] + [_KEYS.LOCAL_VARIABLES]
        variable = creator(**{**kwargs, "collections": keys})
        created.add(id(variable))
        return variable

    tower_vars: Dict[str, tf.Variable] = {}
    with _hidden([_KEYS.LOSSES, _KEYS.REGULARIZATION_LOSSES, _KEYS.TRAINABLE_VARIABLES]):
        with tf.variable_creator_scope(create), _recording(context, tower_vars):
            yield
    names = [name for name in main_vars if id(tower_vars.get(name)) in created]
    replicas().add([tower_vars[name] for name in names], [main_vars[name] for name in names])


@contextmanager
def _hidden(keys: List[str]) -> Iterator[None]:
    """Empties collections for a block; what they had is there again after it, and nothing more."""
    with freeze_collection(keys):
        clear_collection(keys)
        yield
