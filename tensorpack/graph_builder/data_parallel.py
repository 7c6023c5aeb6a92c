"""Builds a model once for each training tower, with shared variables or with copies of them."""

from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.collection import freeze_collection
from tensorpack.tfutils.devices import device_text, tower_device
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
        use_vs: Optional[Sequence[bool]] = None,
    ) -> List[Any]:
        """Calls a function in the context of each of the towers `tower0`, `tower1`, ...

        The towers share the variables of the first one, which alone may make any. A tower that
        `use_vs` gives variables of its own has them under the variable scope `tower{i}`. If it is
        not the first, they are copies: local variables, each of which belongs to the variable of
        the first tower that has the same name there, see `tfutils.variables`. The function finds in
        `tf.trainable_variables()` those that its tower is to be trained by; what it adds to
        `LOSSES`, and with variables of its own to `REGULARIZATION_LOSSES`, is not seen by the other
        towers.

        Args:
          towers: relative ids of GPUs.
          func: builds a tower; called without arguments.
          devices: for each tower what `tf.device` takes; by default its GPU, and the CPU where
            there is none.
          use_vs: for each tower whether it has variables of its own; by default none has.

        Returns:
          what the function returns for each tower.

        Raises:
          ValueError: the lists differ in length; or the variables of two towers differ.
        """
        names = [f"tower{i}" if own else "" for i, own in enumerate(use_vs or [])] or None
        return build_towers(towers, func, devices, names)

    build_on_towers = call_for_each_tower


def build_towers(
    towers: Sequence[int],
    func: Callable[[], Any],
    devices: Optional[Sequence[Any]] = None,
    vs_names: Optional[Sequence[str]] = None,
) -> List[Any]:
    """As `DataParallelBuilder.call_for_each_tower`, with names of variable scopes of any kind.

    Args:
      vs_names: for each tower the variable scope of its own variables, "" for those of the first
        tower; by default "" for each.
    """
    towers = as_list("call_for_each_tower", "towers", towers)
    count = len(towers)
    devices = [tower_device(gpu) for gpu in towers] if devices is None else list(devices)
    vs_names = [""] * count if vs_names is None else list(vs_names)
    if not towers or len(devices) != count or len(vs_names) != count:
        raise ValueError(
            f"There must be at least one tower, and a device and a variable scope for each: got "
            f"{count} towers, {len(devices)} devices and {len(vs_names)} scopes."
        )
    if count > 1:
        logger.info(f"Training a model of {count} tower")
    results: List[Any] = []
    mains: Dict[str, tf.Variable] = {}
    for index, (gpu, device, vs_name) in enumerate(zip(towers, devices, vs_names)):
        shown = device_text(gpu, device)
        logger.info(f"Building graph for training tower {index} on device {shown} ...")
        context = TowerContext(f"tower{index}", is_training=True, index=index, vs_name=vs_name)
        with tf.device(device), ExitStack() as stack:
            if index == 0:
                stack.enter_context(_recording(context, mains))
            elif vs_name:
                stack.enter_context(_copying(context, mains))
            else:
                stack.enter_context(_hidden([_KEYS.LOSSES]))
            stack.enter_context(context)
            results.append(func())
    return results


@contextmanager
def _recording(context: TowerContext, variables: Dict[str, tf.Variable]) -> Iterator[None]:
    """Adds the variables that a tower which is built inside of this block asks for, by their names
    within it.
    """
    parts = [each for each in (tf.get_variable_scope().name, context.vs_name) if each]
    scopes = ["".join(f"{each}/" for each in parts), f"{context.ns_name}/", ""]

    def note(variable: Any) -> Any:
        if hasattr(variable, "op"):  # not one in parts, whose parts come here, too
            name = variable.op.name
            prefix = max((each for each in scopes if name.startswith(each)), key=len)
            variables.setdefault(name[len(prefix) :], variable)
        return variable

    def note_asked(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return note(getter(*args, **kwargs))

    def creator(create: Callable[..., Any], **kwargs: Any) -> Any:
        variable = create(**kwargs)
        keys = kwargs.get("collections")
        return note(variable) if keys is None or _KEYS.GLOBAL_VARIABLES in keys else variable

    with custom_getter_scope(note_asked), tf.variable_creator_scope(creator):
        yield


@contextmanager
def _copying(context: TowerContext, mains: Dict[str, tf.Variable]) -> Iterator[None]:
    """Makes the variables of a tower that is built inside of this block copies of the main ones."""
    made: List[tf.Variable] = []

    def creator(create: Callable[..., Any], **kwargs: Any) -> Any:
        keys = kwargs.get("collections")
        keys = [_KEYS.GLOBAL_VARIABLES] if keys is None else list(keys)
        is_copy = _KEYS.GLOBAL_VARIABLES in keys
        kwargs["collections"] = [each for each in keys if each != _KEYS.GLOBAL_VARIABLES] + (
            [_KEYS.LOCAL_VARIABLES] if is_copy else []
        )
        variable = create(**kwargs)
        if is_copy:
            made.append(variable)
        return variable

    own: Dict[str, tf.Variable] = {}
    with _hidden([_KEYS.LOSSES, _KEYS.REGULARIZATION_LOSSES, _KEYS.TRAINABLE_VARIABLES]):
        with tf.variable_creator_scope(creator), _recording(context, own):
            yield
        trained = {id(each) for each in tf.trainable_variables()}
    ids = {id(each) for each in made}
    copies = {name: each for name, each in own.items() if id(each) in ids}
    _check_alike(context, mains, copies, trained)
    replicas().add(list(copies.values()), [mains[name] for name in copies])


@contextmanager
def _hidden(keys: List[str]) -> Iterator[None]:
    """Empties collections for a block; what they had is there again after it, and nothing more."""
    with freeze_collection(keys):
        for key in keys:
            tf.get_default_graph().clear_collection(key)
        yield


def _check_alike(
    context: TowerContext,
    mains: Dict[str, tf.Variable],
    copies: Dict[str, tf.Variable],
    trained: Iterable[int],
) -> None:
    main_trained = {id(each) for each in tf.trainable_variables()}
    is_trained = {name: id(each) in main_trained for name, each in mains.items()}
    lacks = [name for name, each in is_trained.items() if each and name not in copies]
    more = [name for name in copies if name not in mains]
    other = [n for n, v in copies.items() if n in mains and (id(v) in trained) != is_trained[n]]
    if lacks or more or other:
        raise ValueError(
            f"The variables of {context.ns_name} differ from those of the first tower: it lacks "
            f"{', '.join(lacks) or 'none'}, has {', '.join(more) or 'none'} besides, and trains "
            f"others than the first of {', '.join(other) or 'these'}. Build the same model in each "
            "tower, with names that do not depend on it."
        )
