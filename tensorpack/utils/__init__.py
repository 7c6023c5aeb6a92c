"""Helpers that need nothing but Python and numpy: logging, randomness, progress, concurrency."""

from . import logger
from .argtools import (
    execute_only_once,
    log_once,
    map_arg,
    memoized,
    memoized_ignoreargs,
    memoized_method,
    shape2d,
    shape4d,
)
from .concurrency import (
    DIE,
    LoopThread,
    OrderedContainer,
    ShareSessionThread,
    StoppableThread,
    ensure_proc_terminate,
    mask_sigint,
    start_proc_mask_signal,
    subproc_call,
)
from .fs import download, get_dataset_path, mkdir_p, normpath, recursive_walk
from .gpu import change_env, change_gpu, get_nr_gpu, get_num_gpu
from .progress import get_tqdm, get_tqdm_kwargs
from .rng import fix_rng_seed, get_rng
from .stats import Accuracy, BinaryStatistics, OnlineMoments, RatioCounter, StatCounter
from .timer import (
    IterSpeedCounter,
    Timer,
    humanize_time_delta,
    print_total_timer,
    timed_operation,
    total_timer,
)

__all__ = [
    "Accuracy",
    "BinaryStatistics",
    "DIE",
    "IterSpeedCounter",
    "LoopThread",
    "OnlineMoments",
    "OrderedContainer",
    "RatioCounter",
    "ShareSessionThread",
    "StatCounter",
    "StoppableThread",
    "Timer",
    "change_env",
    "change_gpu",
    "download",
    "ensure_proc_terminate",
    "execute_only_once",
    "fix_rng_seed",
    "get_dataset_path",
    "get_nr_gpu",
    "get_num_gpu",
    "get_rng",
    "get_tqdm",
    "get_tqdm_kwargs",
    "humanize_time_delta",
    "log_once",
    "logger",
    "map_arg",
    "mask_sigint",
    "memoized",
    "memoized_ignoreargs",
    "memoized_method",
    "mkdir_p",
    "normpath",
    "print_total_timer",
    "recursive_walk",
    "shape2d",
    "shape4d",
    "start_proc_mask_signal",
    "subproc_call",
    "timed_operation",
    "total_timer",
]
