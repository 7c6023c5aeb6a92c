"""An HDF5 file that is written: the first error of its disk is raised, and nothing crashes."""

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Tuple

from tensorpack.utils.optional import require


@contextmanager
def new_hdf5(path: str, **options: Any) -> Iterator[Tuple[Any, Callable[[], None]]]:
    """Opens an HDF5 file for writing, empty, and closes it at the end of the block.

    Yields it, and a function that raises the error of a write; nothing is written after one.
    """
    h5py = require("h5py")
    # HDF5 reads what it has written. Without a buffer an error comes from the write that it is of.
    with open(path, "w+b", buffering=0) as file:
        unfailing = _Unfailing(file, path)
        try:
            with h5py.File(unfailing, "w", **options) as target:
                yield target, unfailing.check
        except Exception:  # HDF5 may fail later, on what it cannot read again
            unfailing.check()
            raise
        unfailing.check()


class _Unfailing:
    """A file whose `write` and `truncate` never fail; the first error is kept.

    libhdf5 writes at close what it still holds. If that fails, it is left with objects of a half
    closed file, and freeing the next one crashes the process (seen with 1.10, 1.14 and 2.0).
    """

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path
        self._error: Optional[BaseException] = None
        self.seek, self.tell, self.flush = file.seek, file.tell, file.flush
        self.read, self.readinto = file.read, file.readinto
        self.write, self.truncate = self._kept(self._write), self._kept(file.truncate)

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def _kept(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Returns a function that does the same as long as there is no error.

        A generator waits within `try` for each call: a signal handler may raise at the begin of a
        function, before any `try` in it, and KeyboardInterrupt is an error as well.
        """
        calls = self._calls(function)
        next(calls)
        return calls.send

    def _calls(self, function: Callable[[Any], Any]) -> Any:
        while True:
            try:
                while True:
                    argument = yield
                    if self._error is None:
                        function(argument)
            except GeneratorExit:
                return
            except BaseException as error:
                if isinstance(error, OSError) and error.filename is None:
                    error.filename = self._path
                self._error = self._error or error

    def _write(self, data: Any) -> None:
        left = memoryview(data)
        while len(left):
            left = left[self._file.write(left) :]  # the last bytes before the end fit in part
