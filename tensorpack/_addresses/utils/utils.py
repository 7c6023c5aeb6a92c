"""`tensorpack.utils.utils` of older versions; see `tensorpack.utils`."""

from tensorpack.utils import (
    change_env,
    execute_only_once,
    fix_rng_seed,
    get_rng,
    get_tqdm,
    get_tqdm_kwargs,
    humanize_time_delta,
)

__all__ = [
    "change_env",
    "execute_only_once",
    "fix_rng_seed",
    "get_rng",
    "get_tqdm",
    "get_tqdm_kwargs",
    "humanize_time_delta",
]
