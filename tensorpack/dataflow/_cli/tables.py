"""The text formats that the commands read: CSV and SVMlight."""

import re
from typing import Any, List, Tuple

from ..base import DataFlow
from ..csv import CSVData
from ..svmlight import SVMLightData
from .source import Source, suffix_of

__all__ = ["CSVSource", "SVMLightSource"]

_SPARSE_LINE = re.compile(rb"[-+]?[0-9.]+([eE][-+]?[0-9]+)?([ \t]+[0-9]+:[-+0-9.eE]+)+[ \t]*(#.*)?")


class CSVSource(Source):
    """A table; known by its name alone, for almost every text is one."""

    name = "CSV"
    suffixes = (".csv", ".tsv")
    has_checksums = False

    def open(self, max_errors: int = 0) -> DataFlow:
        return CSVData(
            self.path,
            dtypes=self.options.dtypes or str,
            shuffle=False,
            header=self.options.header,
            delimiter="\t" if suffix_of(self.path) == ".tsv" else ",",
            max_errors=max_errors,
        )

    def facts(self, flow: Any) -> List[Tuple[str, str]]:
        names = "none" if flow.names is None else ", ".join(flow.names)
        return [("version", "none"), ("columns", names)]


class SVMLightSource(Source):
    """Labels and sparse features as text."""

    name = "SVMlight"
    suffixes = (".svm", ".svmlight", ".libsvm")
    has_checksums = False

    @classmethod
    def matches(cls, path: str, start: bytes) -> bool:
        for line in start.splitlines()[:-1] or [start]:  # the last one may be cut off
            if line.split(b"#", 1)[0].strip():
                return _SPARSE_LINE.fullmatch(line.strip()) is not None
        return False

    def open(self, max_errors: int = 0) -> DataFlow:
        return SVMLightData(self.path, shuffle=False, max_errors=max_errors)

    def facts(self, flow: Any) -> List[Tuple[str, str]]:
        return [("version", "none"), ("features", str(flow.num_features))]
