"""Which device the ops of a tower ask for."""

from typing import Any, Callable, List, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_list, is_integer
from tensorpack.utils.gpu import get_num_gpu


def have_gpus() -> bool:
    """Returns whether TensorFlow can use a GPU here; asked without touching any."""
    return tf.test.is_built_with_cuda() and get_num_gpu() > 0


def as_towers(owner: Any, name: str, towers: Any) -> List[Any]:
    """Returns a list of what `tower_device` takes, each once; or raises TypeError, ValueError."""
    towers = as_list(owner, name, towers)
    if not all(is_integer(tower) or isinstance(tower, str) for tower in towers):
        raise TypeError(f"{name} must be a list of GPU ids, such as [0, 1], got {towers}.")
    if not towers or len(set(towers)) < len(towers):
        raise ValueError(f"{name} must be a non-empty list of different GPU ids, got {towers}.")
    return towers


def device_text(gpu: Union[int, str], device: Any = None) -> str:
    """Returns what the log calls the device of a tower; `device` is what `tf.device` is given."""
    if isinstance(gpu, str):
        return gpu
    if isinstance(device, str) and "GPU" not in device:
        return device
    return f"/gpu:{gpu}" if gpu >= 0 and have_gpus() else "/cpu:0"


def tower_device(gpu: Union[int, str], cpus: int = 1) -> Union[str, Callable[[tf.Operation], str]]:
    """Returns what to give to `tf.device` around a tower.

    Everything asks for the GPU, and soft placement puts it on the CPU where there is none. Only for
    variables, and ops that work on them, TensorFlow then writes a page of warnings, so those ask
    for the CPU at once.

    Args:
      gpu: the relative id of a GPU, -1 for the CPU, or the name of a device, which is taken as is.
      cpus: CPU devices of the session. Where there is no GPU, the ids are spread over several.
    """
    if isinstance(gpu, str):
        return gpu
    if gpu < 0:
        return "/device:CPU:0"
    device = f"/device:GPU:{gpu}"
    if have_gpus():
        return device
    if cpus > 1:
        return f"/device:CPU:{gpu % cpus}"

    def place(op: tf.Operation) -> str:
        for tensor in (*op.inputs, *op.outputs):
            # a ref dtype (those of TF 1 variables) differs from its own base dtype
            if tensor.dtype in (tf.resource, tensor.dtype._as_ref):
                return "/device:CPU:0"
        return device

    return place
