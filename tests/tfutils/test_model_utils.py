"""Tests of the parameter table, held against the table of the original run, and of shape texts."""

import json
import re

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.model_utils import describe_trainable_vars, get_shape_str

TABLE = """Model Parameters: \n\
name           shape               dim
-------------  --------------  -------
conv0/W:0      [8, 8, 4, 32]      8192
conv0/b:0      [32]                 32
conv0/alpha:0  []                    1
conv1/W:0      [4, 4, 32, 64]    32768
conv1/b:0      [64]                 64
conv1/alpha:0  []                    1
conv2/W:0      [3, 3, 64, 64]    36864
conv2/b:0      [64]                 64
conv2/alpha:0  []                    1
fc0/W:0        [7744, 512]     3964928
fc0/b:0        [512]               512
fct/W:0        [512, 4]           2048
fct/b:0        [4]                   4
Total #vars=13, #param=4045479 (15.43 MB assuming all float32)"""

SHAPES = re.findall(r"^(\S+):0 +(\[.*?\])", TABLE, re.MULTILINE)


def test_table_is_that_of_the_original_run(log_lines):
    assert len(SHAPES) == 13
    for name, shape in SHAPES:
        tf.get_variable(name, json.loads(shape))
        tf.get_variable("target/" + name, json.loads(shape), trainable=False)
    describe_trainable_vars()
    assert log_lines == [("info", TABLE)]


def test_a_model_without_parameters_is_a_warning(log_lines):
    describe_trainable_vars()
    assert log_lines == [("warn", "There are no trainable variables in the graph!")]


@pytest.mark.parametrize(
    "shape, text",
    [([None, 84, 84, 4], "[None, 84, 84, 4]"), ([], "[]"), (None, "?")],
)
def test_shape_of_a_tensor(shape, text):
    assert get_shape_str(tf.placeholder(tf.float32, shape)) == text


def test_shape_of_a_list_and_of_variables():
    x, v = tf.zeros([2, 3]), tf.get_variable("v", [4])
    assert get_shape_str([x, v, 3]) == "[2, 3], [4], 3"
