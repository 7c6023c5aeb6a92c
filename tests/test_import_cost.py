"""An import of the library loads nothing heavy, changes no environment variable, prints nothing.

Each check runs in a Python of its own, because this one has imported everything already.
"""

import os
import subprocess
import sys

import pytest

from tests.checks import PACKAGE, ROOT

PROBE = """
import os, sys, threading, warnings
warnings.simplefilter("error")
before = dict(os.environ)
import {module}
heavy = [n for n in {heavy} if n in sys.modules]
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


FILES = sorted(path.stem for path in (PACKAGE / "utils").glob("*.py"))
UTILS = [f"tensorpack.utils.{name}" for name in FILES if name != "__init__"]
HEAVY = "tensorflow cv2 gymnasium ale_py matplotlib msgpack pynvml zmq".split()


@pytest.mark.parametrize(
    "module",
    ["tensorpack", ", ".join(UTILS), "tensorpack.dataflow", "tensorpack.RL"],
    ids=["root", "utils", "dataflow", "RL"],
)
def test_an_import_costs_nothing_but_itself(module):
    only = "'._' not in n" if module == "tensorpack" else "False"
    done = run_probe(PROBE.format(module=module, heavy=HEAVY, only=only))
    assert (done.returncode, done.stdout) == (0, "")


def modules_after(statement):
    """The modules that are loaded after a statement, in a Python of its own; not old addresses."""
    is_there = "getattr(getattr(m, '__spec__', 1), 'loader', 1)"
    loaded = f"sorted(n for n, m in sys.modules.items() if {is_there})"
    done = run_probe(f"import sys, numpy\n{statement}\nprint(*{loaded})")
    assert done.returncode == 0, done.stdout
    return set(done.stdout.split())


def test_dir_of_the_root_loads_no_package():
    loaded = modules_after(
        "import tensorpack; assert {'DataFlow', 'TrainConfig', 'train'} <= set(dir(tensorpack))"
    )
    assert not [name for name in loaded if name.startswith("tensorpack.") and "._" not in name]


def test_names_of_the_data_pipeline_load_no_tensorflow():
    assert "tensorflow" not in modules_after("from tensorpack import BatchData, DataFlow, logger")


def test_dataflow_loads_none_of_its_modules_before_one_is_used():
    loaded = modules_after("import tensorpack.dataflow")
    assert {name for name in loaded if name.startswith("tensorpack.")} == {
        "tensorpack._old_modules",
        "tensorpack._public_names",
        "tensorpack._version",
        "tensorpack.dataflow",
    }
    assert not loaded & {"concurrent.futures", "logging", "multiprocessing", "socket", "tqdm"}


@pytest.mark.parametrize(
    "names, others",
    [
        ("BatchData, DataFromList, MapData", "_processes remote threads lmdb hdf5 npz"),
        ("LMDBSerializer", "_processes remote threads caffe hdf5 npz tfrecord"),
    ],
)
def test_a_flow_loads_only_the_modules_it_is_made_of(names, others):
    loaded = modules_after(f"from tensorpack.dataflow import {names}")
    assert not {f"tensorpack.dataflow.{name}" for name in others.split()} & loaded
    assert not loaded & {"cv2", "google_crc32c", "h5py", "lmdb", "msgpack", "sklearn", "zmq"}
    assert not loaded & {"concurrent.futures", "tabulate", "urllib.request"}


def test_dataflow_has_its_names_modules_and_no_others():
    import tensorpack.dataflow as dataflow

    namespace = {}
    exec("from tensorpack.dataflow import *", namespace)
    assert set(dataflow.__all__) == namespace.keys() - {"__builtins__"}
    assert set(dataflow.__all__) == set(dir(dataflow)) == {*dataflow._HOMES, "dataset", "imgaug"}
    assert dataflow.dftools.dump_dataflow_to_lmdb is dataflow.lmdb.dump_dataflow_to_lmdb
    with pytest.raises(AttributeError, match="'tensorpack.dataflow' has no public name 'NoData'"):
        dataflow.NoData  # noqa: B018


def test_a_name_that_is_mistyped_gets_the_nearest():
    import tensorpack

    with pytest.raises(AttributeError, match="'DataFlo'. Did you mean DataFlow"):
        tensorpack.DataFlo  # noqa: B018
    assert not hasattr(tensorpack, "__wrapped__")
