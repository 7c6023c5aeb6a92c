"""Row 44 of the matrix: the interpreter ends while daemon threads run."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from .test_matrix import Case, run

RUNS = 20


@pytest.mark.slow
@pytest.mark.fault_row(44)
def test_the_interpreter_ends_in_order_with_daemon_threads(tmp_path):
    case = Case(44, "daemons", 0, says=("PHASE done",), never=())
    directories = [tmp_path / str(number) for number in range(RUNS)]
    for directory in directories:
        directory.mkdir()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda directory: run(case, directory), directories))
