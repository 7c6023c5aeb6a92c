"""A new HDF5 file whose disk may run full.

libhdf5 writes at close what it still holds. Where that fails, it is left with objects of a file
that is half closed, and the next one of them that is freed crashes the process (seen with 1.10,
1.14 and 2.0). So it never hears of a failure: it writes through a file object that keeps the first
error to itself, drops what comes later, and lets the error out when nothing of HDF5 is under way.
"""

from contextlib import contextmanager
from typing import Any, Callable, Generator, Iterator, Optional, Tuple

from tensorpack.utils.optional import require

__all__ = ["new_hdf5"]


@contextmanager
def new_hdf5(path: str, **options: Any) -> Iterator[Tuple[Any, Callable[[], None]]]:
    """Opens an HDF5 file for writing, empty, and closes it at the end of the block.

    Args:
      path: of the file; what it holds is lost.
      **options: as for `h5py.File`.

    Yields:
      the `h5py.File`, and a function that raises the error by which writing has failed, if it has.
      To be called now and then, for all that is written later is lost.

    Raises:
      ImportError: h5py is not installed.
      OSError: the file cannot be opened, or, at the end of the block, could not be written.
    """
    h5py = require("h5py")
    # HDF5 reads what it has written. Without a buffer an error comes from the write that it is of.
    with open(path, "w+b", buffering=0) as file:
        unfailing = _Unfailing(file, path)
        try:
            with h5py.File(unfailing, "w", **options) as target:
                yield target, unfailing.check
        except Exception:  # HDF5 complains of what it cannot read again, which is not the cause
            unfailing.check()
            raise
        unfailing.check()


class _Unfailing:
    """A file whose `write`, `flush` and `truncate` never fail; the first error is kept."""

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

        It goes on with a generator that waits within `try`. A handler of a signal may raise at
        the begin of a function, before any `try` in it, and KeyboardInterrupt is an error as well.
        """
        calls = self._calls(function)
        next(calls)
        return calls.send

    def _calls(self, function: Callable[[Any], Any]) -> Generator[None, Any, None]:
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
