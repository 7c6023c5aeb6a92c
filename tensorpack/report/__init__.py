"""Makes a page of HTML of the log directories of trainings: one file, to be read offline.

Reads files only: neither TensorFlow nor matplotlib is needed, and the runs may be of any version.
"""

from ._page import write_report

__all__ = ["write_report"]
