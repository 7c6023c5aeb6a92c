"""Public names for editors and type checkers; made by scripts/public_names."""

from typing import List

from . import logger as logger
from .argtools import execute_only_once as execute_only_once
from .argtools import graph_memoized as graph_memoized
from .argtools import log_once as log_once
from .argtools import map_arg as map_arg
from .argtools import memoized as memoized
from .argtools import memoized_ignoreargs as memoized_ignoreargs
from .argtools import memoized_method as memoized_method
from .argtools import shape2d as shape2d
from .argtools import shape4d as shape4d
from .concurrency import DIE as DIE
from .concurrency import LoopThread as LoopThread
from .concurrency import OrderedContainer as OrderedContainer
from .concurrency import ShareSessionThread as ShareSessionThread
from .concurrency import StoppableThread as StoppableThread
from .concurrency import ensure_proc_terminate as ensure_proc_terminate
from .concurrency import mask_sigint as mask_sigint
from .concurrency import start_proc_mask_signal as start_proc_mask_signal
from .concurrency import subproc_call as subproc_call
from .fs import download as download
from .fs import get_dataset_path as get_dataset_path
from .fs import mkdir_p as mkdir_p
from .fs import normpath as normpath
from .fs import recursive_walk as recursive_walk
from .gpu import change_env as change_env
from .gpu import change_gpu as change_gpu
from .gpu import get_nr_gpu as get_nr_gpu
from .gpu import get_num_gpu as get_num_gpu
from .progress import get_tqdm as get_tqdm
from .progress import get_tqdm_kwargs as get_tqdm_kwargs
from .rng import fix_rng_seed as fix_rng_seed
from .rng import get_rng as get_rng
from .stats import Accuracy as Accuracy
from .stats import BinaryStatistics as BinaryStatistics
from .stats import OnlineMoments as OnlineMoments
from .stats import RatioCounter as RatioCounter
from .stats import StatCounter as StatCounter
from .timer import IterSpeedCounter as IterSpeedCounter
from .timer import Timer as Timer
from .timer import humanize_time_delta as humanize_time_delta
from .timer import print_total_timer as print_total_timer
from .timer import timed_operation as timed_operation
from .timer import total_timer as total_timer

__all__: List[str]
