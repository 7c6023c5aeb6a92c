"""Helpers that need nothing but Python and numpy: logging, randomness, progress, concurrency."""

from . import logger
from .argtools import execute_only_once
from .env import change_env
from .progress import get_tqdm, get_tqdm_kwargs
from .rng import fix_rng_seed, get_rng
from .timer import humanize_time_delta

__all__ = [
    "change_env",
    "execute_only_once",
    "fix_rng_seed",
    "get_rng",
    "get_tqdm",
    "get_tqdm_kwargs",
    "humanize_time_delta",
    "logger",
]
