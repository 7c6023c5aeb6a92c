"""Helpers that scripts of 2017 import, and nothing in the library needs."""

_HELPERS = {  # module -> its public names
    "debug": "enable_call_trace",
    "develop": (
        "HIDE_DOC LazyLoader NonPicklableWrapper building_rtfd create_dummy_class "
        "create_dummy_func deprecated log_deprecated"
    ),
    "discretize": "UniformDiscretizer1D UniformDiscretizerND",
    "globvars": "GlobalNS globalns use_global_argument",
    "lut": "LookUpTable",
}
