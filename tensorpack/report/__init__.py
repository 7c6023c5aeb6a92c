"""Makes a page of HTML of the log directory of a training: one file, to be read offline.

Reads files only: neither TensorFlow nor matplotlib is needed, and the run may be of any version.
"""

from ._page import write_report

__all__ = ["write_report"]
