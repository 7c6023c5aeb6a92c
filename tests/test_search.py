"""What a search of the site finds first, for words that people type.

It runs the site's own search in node, on the site that `make docs` has built.
"""

import json
import shutil
import subprocess

import pytest

from tests.checks import ROOT

SITE = ROOT / "build" / "docs"
API = "reference/api/"

# What is typed -> a page, or a name, that is among the first three results.
AMONG_THREE = {
    "early stop": f"{API}validation#tensorpack.callbacks.EarlyStop",
    "resume": "resuming",
    "savedmodel export": "weights",
    "checkpoint": f"{API}saving",
    "image folder png": "tutorials/your-images",
    "learning rate": "howto/learning-rate",
    "learning rate schedule": "howto/learning-rate",
    "confusion matrix": "howto/validation",
    "train validation split": "tutorials/your-images",
    "batch norm": f"{API}normalization#tensorpack.models.BatchNorm",
    "gpu": f"{API}several-gpus",
    "multi gpu": "tutorials/06-several-gpus",
    "lmdb": f"{API}files",
    "queue": "inputs",
    "dqn": "examples/dqn",
    "atari": "learning",
    "export": "weights",
    "tensorboard": "runs",
    "inference": "predicting",
    "gradient clipping": f"{API}gradients",
    "gan": "examples/scripts/GAN-DCGAN",
    "data augmentation": "augmentors",
    "tf.data": "inputs",
    "out of memory": "howto/speed",
    "nan": "howto/debugging",
    "transfer learning": "tutorials/04-saving",
}
# What is a name or a title -> the first result.
FIRST = {
    "EarlyStop": f"{API}validation#tensorpack.callbacks.EarlyStop",
    "ModelSaver": f"{API}saving#tensorpack.callbacks.ModelSaver",
    "imagefolder": f"{API}images#tensorpack.dataflow.ImageFolder",
    "TrainConfig": f"{API}training#tensorpack.train.TrainConfig",
    "tensorpack.callbacks.MinSaver": f"{API}saving#tensorpack.callbacks.MinSaver",
    "add_moving_summary": f"{API}summaries#tensorpack.tfutils.add_moving_summary",
    "dataflow": "dataflow",
    "quick start": "quickstart",
    "migration": "migration",
    "glossary": "glossary",
}


@pytest.fixture(scope="module")
def results():
    """What is typed -> the first results, for all that the tests type."""
    node = shutil.which("node")
    if node is None or not (SITE / "searchindex.js").exists():
        pytest.skip("needs node, and the site of make docs")
    command = [node, str(ROOT / "tests" / "search.js"), str(SITE)]
    typed = json.dumps([*AMONG_THREE, *FIRST])
    return json.loads(subprocess.run(command, input=typed.encode(), stdout=-1, check=True).stdout)


@pytest.mark.parametrize("typed", AMONG_THREE)
def test_words_find_their_page(results, typed):
    wanted = AMONG_THREE[typed]
    assert wanted in [
        each if "#" in wanted else each.partition("#")[0] for each in results[typed][:3]
    ]


@pytest.mark.parametrize("typed", FIRST)
def test_a_name_or_title_is_found_first(results, typed):
    wanted = FIRST[typed]
    first = results[typed][0]
    assert (first if "#" in wanted else first.partition("#")[0]) == wanted
