"""Public names for editors and type checkers; made by scripts/public_names."""

from typing import List

from .allreduce import allreduce_grads as allreduce_grads
from .data_parallel import DataParallelBuilder as DataParallelBuilder
from .model_desc import InputDesc as InputDesc
from .model_desc import InputVar as InputVar
from .model_desc import ModelDesc as ModelDesc
from .model_desc import ModelDescBase as ModelDescBase
from .placement import LeastLoadedDeviceSetter as LeastLoadedDeviceSetter

__all__: List[str]
