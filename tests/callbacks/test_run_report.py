import numpy as np
import pytest

from tensorpack.callbacks import Callback, JSONWriter, PeriodicTrigger, RunReport
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.train import SimpleTrainer
from tensorpack.utils import logger
from tests import helpers
from tests.contracts.callback import contract_of
from tests.helpers import TinyModel

TestRunReport = contract_of(RunReport)


def train(*callbacks, **options):
    flow = DataFromList([[np.ones(2, np.float32)] * 2] * 3, shuffle=False)
    options = {"monitors": [JSONWriter()], **options}
    SimpleTrainer(helpers.config(callbacks, model=TinyModel(), dataflow=flow, **options)).train()


def test_a_page_is_written_by_a_trigger_and_when_all_is_known(log_dir, tmp_path):
    out, seen = tmp_path / "page.html", []

    class Looks(Callback):
        def _trigger_epoch(self):
            seen.append(out.exists() and "running" in out.read_text(encoding="utf-8"))

    train(PeriodicTrigger(RunReport(str(out)), every_k_epochs=2), Looks(), max_epoch=2)
    text = out.read_text(encoding="utf-8")
    assert seen == [False, True] and 'class="badge finished">finished' in text
    assert "epoch 2, step 4" in text and "2 variables, 2 numbers" in text


def test_a_run_that_fails_has_one_too(log_dir):
    class Breaks(Callback):
        def _trigger_step(self):
            raise KeyError("broken")

    with pytest.raises(KeyError):
        train(RunReport(), Breaks())
    with open(log_dir + "/report.html", encoding="utf-8") as file:
        text = file.read()
    assert 'class="badge failed">failed' in text and "KeyError: &#x27;broken&#x27;" in text
    assert "Traceback" in text and "raise KeyError(&quot;broken&quot;)" in text


def test_what_cannot_be_written_is_a_warning(log_dir, tmp_path, capsys):
    with tf.Graph().as_default():
        train(RunReport(str(tmp_path / "no" / "page.html")))
    out = capsys.readouterr().out
    assert "There is no page about this run" in out and f"{tmp_path}/no/page.html" in out
    logger.close_logger_dir()
    train(RunReport())
    assert "it has no log directory" in capsys.readouterr().out
