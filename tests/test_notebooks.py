"""Notebooks, in real Jupyter kernels: a tutorial as a notebook, and runs that are interrupted."""

import importlib.util
import re
import time

import pytest

from tests.checks import ROOT
from tests.conftest import HAS_TENSORFLOW
from tests.test_tutorials import PROMISES

manager = pytest.importorskip("jupyter_client.manager", reason="needs .[notebooks]")
pytest.importorskip("ipykernel", reason="needs .[notebooks]")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow"),
    pytest.mark.filterwarnings("ignore:::jupyter_client|nbclient|zmq|traitlets"),
]

SETUP = """
import tensorpack as tp
from tensorpack.compat import tfv1 as tf

class Model(tp.ModelDesc):
    def inputs(self):
        return [tf.TensorSpec([None, 4], tf.float32, "x")]

    def build_graph(self, x):
        return tf.reduce_mean(tp.FullyConnected("fc", x, 1) ** 2, name="cost")

    def optimizer(self):
        return tf.train.AdamOptimizer(0.01)

def train(steps):
    data = tp.FakeData([[8, 4]], 1000, dtype="float32")
    config = tp.TrainConfig(model=Model(), dataflow=data, steps_per_epoch=steps, max_epoch=1)
    tp.launch_train_with_config(config, tp.SimpleTrainer())
"""
TRAIN = "with tf.Graph().as_default():\n    train({})"
SLEEP = """
import time

try:
    print("begun")
    time.sleep(100)
except KeyboardInterrupt:
    print("an interrupt as before")
"""


class Notebook:
    """A kernel whose cells are run one after the other; `run` returns what they print."""

    def __init__(self, folder):
        self._kernel, self._client = manager.start_new_kernel(kernel_name="python3", cwd=folder)

    def run(self, code, interrupt_at=None, timeout=200):
        """Runs a cell, and interrupts it once when it has printed `interrupt_at`.

        Returns what was printed, each stream by its name; under "error" the name and text.
        """
        message = self._client.execute(code)
        printed = {"stdout": "", "stderr": "", "error": ""}
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            reply = self._client.get_iopub_msg(timeout=end - time.monotonic())
            if reply["parent_header"].get("msg_id") != message:
                continue
            content = reply["content"]
            if reply["msg_type"] == "stream":
                printed[content["name"]] += content["text"]
            elif reply["msg_type"] == "error":
                printed["error"] += f"{content['ename']}: {content['evalue']}"
            elif reply["msg_type"] == "status" and content["execution_state"] == "idle":
                return printed
            if interrupt_at and interrupt_at in printed["stdout"] + printed["stderr"]:
                interrupt_at = self._kernel.interrupt_kernel()
        raise TimeoutError(f"The cell did not end in {timeout} s: {printed}")

    def close(self):
        self._client.stop_channels()
        self._kernel.shutdown_kernel(now=True)
        self._kernel.cleanup_resources()


@pytest.fixture
def notebook(tmp_path):
    opened = Notebook(str(tmp_path))
    yield opened
    opened.close()


def test_a_run_is_interrupted_in_order_and_others_follow_in_the_kernel(notebook):
    assert notebook.run(SETUP)["error"] == ""
    before = notebook.run("import threading\nprint(threading.active_count())")["stdout"]
    first = notebook.run(TRAIN.format(10**8), interrupt_at="Start Epoch 1")
    assert first["error"] == "TrainingInterrupted: SIGINT ended the training in order."
    assert "Detected Ctrl-C" in first["stdout"]
    for _ in range(2):
        again = notebook.run(TRAIN.format(20))
        assert again["error"] == "" and "Training has finished!" in again["stdout"]
        assert "100%|##########|20/20[" in again["stderr"]
    assert notebook.run("print(threading.active_count())")["stdout"] == before
    caught = notebook.run(SLEEP, interrupt_at="begun")
    assert caught["stdout"] == "begun\nan interrupt as before\n"


def test_the_first_tutorial_is_a_notebook_that_runs(tmp_path, monkeypatch):
    pytest.importorskip("jupytext", reason="needs .[notebooks]")
    nbclient = pytest.importorskip("nbclient", reason="needs .[notebooks]")
    nbformat = pytest.importorskip("nbformat")
    place = ROOT / "docs" / "make_notebook.py"
    spec = importlib.util.spec_from_file_location("make_notebook", place)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    path = made.write_notebook(made.PAGES[0], tmp_path / "notebooks")
    notebook = nbformat.read(path, as_version=4)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    text = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (path.parent / link).exists()
    assert len(code) >= 4 and not any("from train" in source for source in code)
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": tmp_path}}
    ).execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())
    )
    ((pattern, least, most),) = PROMISES["01-classifier"]
    assert least <= float(re.search(pattern, printed).group(1)) <= most
