"""Builds the training graph of a model description, for one tower or several.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "allreduce": "allreduce_grads",
    "data_parallel": "DataParallelBuilder",
    "model_desc": "InputDesc InputVar ModelDesc ModelDescBase",
    "placement": "LeastLoadedDeviceSetter",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
