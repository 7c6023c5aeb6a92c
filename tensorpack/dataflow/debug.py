"""Tools for development: the speed of a flow, and the contents of its datapoints."""

import itertools
import time
from typing import Any, Dict, Iterator, List, Optional, Union

from tensorpack.utils import get_tqdm, logger
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count

from .base import DataFlow, ProxyDataFlow
from .map import summary_of


class TestDataSpeed(ProxyDataFlow):
    """Measures how many datapoints a flow gives in a second, with nothing consuming them.

    Use it alone, `TestDataSpeed(flow).start()`, or in a pipeline, where each pass is
    preceded by a measurement, except the rest of a pass that is resumed.
    """

    __test__ = False  # not a test case for pytest
    _STATE: Dict[str, Any] = {}
    _resumed = False

    def __init__(self, ds: DataFlow, size: int = 5000, warmup: int = 0) -> None:
        """
        Args:
          size: the number of datapoints to measure; fewer if a pass of the flow has fewer.
          warmup: the number of datapoints to take first, without measuring.
        """
        super().__init__(ds)
        self.test_size = as_count(self, "size", size)
        self.warmup = as_count(self, "warmup", warmup, 0)

    def __iter__(self) -> Iterator[Any]:
        if not self._resumed:
            self.start()
        self._resumed = False
        return iter(self.ds)

    def _go_to(self, position: Any) -> None:
        self._resumed = position is not None

    def start(self) -> float:
        """Resets the flow, takes datapoints, and logs and returns how many it gives in a second."""
        self.ds.reset_state()
        datapoints = iter(self.ds)
        for _ in itertools.islice(datapoints, self.warmup):
            pass
        count = 0
        with get_tqdm(total=self.test_size, desc="Speed") as bar:
            begin = time.perf_counter()
            for _ in itertools.islice(datapoints, self.test_size):
                count += 1
                bar.update()
            seconds = time.perf_counter() - begin
        rate = count / max(seconds, 1e-9)
        logger.info(f"{count} datapoints in {seconds:.3f} sec.: {rate:.1f} datapoints/sec.")
        return rate

    start_test = start  # its name of 2017


class PrintData(ProxyDataFlow):
    """Logs the first datapoints of each pass, or of its rest: types, shapes, dtypes and ranges."""

    @accepts_old_keywords(label="name")
    def __init__(
        self,
        ds: DataFlow,
        num: int = 1,
        name: Optional[str] = None,
        max_depth: Union[int, str] = 3,
        max_list: int = 3,
    ) -> None:
        """
        Args:
          num: how many datapoints of a pass to log.
          name: stands in the log, to tell several of these apart.
          max_depth: how deep to go into lists and dicts. A string is taken as `name`, which was
            the fourth argument in 2017.
          max_list: how many elements of a list or dict to show.
        """
        super().__init__(ds)
        if isinstance(max_depth, str) and name is None:
            name, max_depth = max_depth, 3
        self.num, self.name = as_count(self, "num", num, 0), name
        self.max_depth, self.max_list = int(max_depth), max_list

    def _transform(self, datapoints: Iterator[Any]) -> Iterator[Any]:
        title = "DataFlow Info" + (f" ({self.name})" if self.name else "")
        for number, datapoint in enumerate(datapoints):
            if number < self.num:
                lines = describe(datapoint, self.max_depth, self.max_list)
                logger.info("\n".join([f"{title}: datapoint {number} is", *lines]))
            yield datapoint

    def print_info(self) -> None:
        """Logs the first datapoints at once, as scripts of 2017 ask; resets the flow around it."""
        self.reset_state()
        for _ in itertools.islice(self, self.num):
            pass
        self.reset_state()


def describe(value: Any, max_depth: int = 3, max_list: int = 3, indent: int = 1) -> List[str]:
    """Returns what is in a datapoint, in lines that are indented by two spaces for each level."""
    if not isinstance(value, (list, tuple, dict)):
        return ["  " * indent + _one_line(value)]
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    lines = ["  " * indent + f"{type(value).__name__} of {len(items)}"]
    for key, element in items[: max_list if max_depth > 0 else 0]:
        first, *rest = describe(element, max_depth - 1, max_list, indent + 1)
        lines += ["  " * (indent + 1) + f"{key}: {first.strip()}", *rest]
    if max_depth > 0 and len(items) > max_list:
        lines.append("  " * (indent + 1) + f"... {len(items) - max_list} more")
    return lines


def _one_line(value: Any) -> str:
    name = type(value).__name__
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        text = summary_of(value) if isinstance(value, (str, bytes, int)) else repr(value)
        return f"{name} {text}" if len(text) <= 60 else f"{name} {text[:57]}..."
    is_number = getattr(value.dtype, "kind", "O") in "biuf"  # dtypes of PyTorch have none
    ends = f" in [{value.min()}, {value.max()}]" if is_number and value.size > 0 else ""
    return f"{name} {list(value.shape)} {value.dtype}{ends}"
