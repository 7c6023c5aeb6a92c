"""Reads the files of MATLAB in which some datasets are published, by scipy."""

import io
from typing import Any, Dict, Optional

from tensorpack.utils.optional import require

from ..files.records import DamagedFile


def read_matlab(path: str, *names: str, content: Optional[bytes] = None) -> Dict[str, Any]:
    """Returns variables of a file of MATLAB's version 5.

    Args:
      path: of the file.
      *names: the variables, which must be there.
      content: of the file, if that is in an archive.

    Raises:
      DamagedFile: it is no such file, or a variable is missing.
    """
    matlab = require("scipy.io")
    try:
        file = path if content is None else io.BytesIO(content)
        found = matlab.loadmat(file, variable_names=names)
    except Exception as error:  # whatever the bytes at hand lead scipy to
        raise DamagedFile(f"{path} is not a MATLAB file that scipy reads: {error}") from error
    missing = [name for name in names if name not in found]
    if missing:
        raise DamagedFile(f"{path} has no variable {' and '.join(missing)}.")
    return {name: found[name] for name in names}
