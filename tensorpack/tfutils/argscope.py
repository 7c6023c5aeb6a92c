"""Default arguments for layers, in force inside a `with` block of one graph.

Knows nothing about particular layers: a layer says which arguments it takes, and under which names
it keeps them, through its attribute `__argscope_spelling__`; a caller of a layer asks
`get_layer_defaults` for it.
"""

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Sequence, Union

from .common import PerGraph

__all__ = ["argscope", "get_arg_scope", "get_layer_defaults"]

Layer = Callable[..., Any]
Defaults = Dict[Layer, Dict[str, Any]]

# The open scopes of each graph, innermost last. A scope holds the defaults of the scopes around it
# as well, and is never changed once it is open.
_open_scopes: PerGraph = PerGraph(lambda: [{}])


@contextmanager
def argscope(layers: Union[Layer, Sequence[Layer]], **kwargs: Any) -> Iterator[None]:
    """Gives layers default arguments for all calls inside the block.

    An argument that is given in a call wins over the defaults, and an inner scope over an outer
    one. Either spelling of an argument will do, in the scope as in the call. The scope belongs to
    the default graph. ::

        with argscope([Conv2D, FullyConnected], activation=tf.nn.relu):
            x = Conv2D("conv0", x, 32, 3)
            with argscope(Conv2D, activation=None):
                x = Conv2D("conv1", x, 32, 3)      # no activation here

    Args:
      layers: one registered layer or several.
      **kwargs: arguments that every one of the layers takes.

    Raises:
      TypeError: one of the layers is not a registered layer or does not take one of the arguments.
    """
    chosen: List[Any] = list(layers) if isinstance(layers, (list, tuple)) else [layers]
    spelled = [(layer, _spell(layer, kwargs)) for layer in chosen]
    scopes: List[Defaults] = _open_scopes.get()
    inner = dict(scopes[-1])
    for layer, defaults in spelled:
        inner[layer] = {**inner.get(layer, {}), **defaults}
    scopes.append(inner)
    try:
        yield
    finally:
        scopes.pop()


def get_arg_scope() -> Dict[str, Dict[str, Any]]:
    """Returns the defaults in force, as a copy: layer name -> argument -> value."""
    current: Defaults = _open_scopes.get()[-1]
    return {layer.__name__: dict(defaults) for layer, defaults in current.items()}


def get_layer_defaults(layer: Layer) -> Dict[str, Any]:
    """Returns the defaults in force for one layer, as a copy, under the layer's own names."""
    current: Defaults = _open_scopes.get()[-1]
    return dict(current.get(layer, {}))


def _spell(layer: Layer, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments under the layer's own names."""
    spell = getattr(layer, "__argscope_spelling__", None)
    if spell is None:
        raise TypeError(
            f"argscope() got {layer!r}, it needs layers: functions decorated with "
            "layer_register(), such as Conv2D. "
            "Decorate the function, or pass the arguments to it directly."
        )
    return spell(kwargs)
