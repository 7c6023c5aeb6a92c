"""Helpers that need nothing but Python and numpy: logging, randomness, progress, concurrency.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "argtools": (
        "execute_only_once graph_memoized log_once map_arg memoized memoized_ignoreargs "
        "memoized_method shape2d shape4d"
    ),
    "concurrency": (
        "DIE LoopThread OrderedContainer ShareSessionThread StoppableThread "
        "ensure_proc_terminate mask_sigint start_proc_mask_signal subproc_call"
    ),
    "fs": "download get_dataset_path mkdir_p normpath recursive_walk",
    "gpu": "change_env change_gpu get_nr_gpu get_num_gpu",
    "progress": "get_tqdm get_tqdm_kwargs",
    "rng": "fix_rng_seed get_rng",
    "stats": "Accuracy BinaryStatistics OnlineMoments RatioCounter StatCounter",
    "timer": (
        "IterSpeedCounter Timer humanize_time_delta print_total_timer timed_operation total_timer"
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted([*_HOMES, "logger"])
