"""Public names for editors and type checkers; made by scripts/public_names."""

from typing import List

from .record import read_record as read_record
from .statistics import read_epochs as read_epochs

__all__: List[str]
