"""An import of the library loads nothing heavy, changes no environment variable, prints nothing.

Each check runs in a Python of its own, because this one has imported everything already.
"""

import os
import subprocess
import sys

import pytest

from tests.checks import ROOT

PROBE = """
import os, sys, threading, warnings
warnings.simplefilter("error")
before = dict(os.environ)
import {module}
heavy = [n for n in ("tensorflow", "cv2", "gymnasium", "ale_py", "zmq") if n in sys.modules]
assert not heavy, heavy
assert dict(os.environ) == before, "the environment changed"
assert threading.active_count() == 1, threading.enumerate()
assert not [n for n in sys.modules if n.startswith("tensorpack.") and {only}], sorted(sys.modules)
"""


def run_probe(code):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


@pytest.mark.parametrize(
    "module", ["tensorpack", "tensorpack.utils", "tensorpack.dataflow", "tensorpack.RL"]
)
def test_an_import_costs_nothing_but_itself(module):
    only = "'._' not in n" if module == "tensorpack" else "False"
    done = run_probe(PROBE.format(module=module, only=only))
    assert (done.returncode, done.stdout) == (0, "")


def test_dir_of_the_root_loads_no_package():
    code = (
        "import sys, tensorpack\n"
        "assert {'DataFlow', 'TrainConfig', 'train'} <= set(dir(tensorpack))\n"
        "assert not [n for n in sys.modules if n.startswith('tensorpack.') and '._' not in n]\n"
    )
    done = run_probe(code)
    assert (done.returncode, done.stdout) == (0, "")


def test_names_of_the_data_pipeline_load_no_tensorflow():
    code = (
        "import sys\n"
        "from tensorpack import BatchData, DataFlow, logger\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    done = run_probe(code)
    assert (done.returncode, done.stdout) == (0, "")
