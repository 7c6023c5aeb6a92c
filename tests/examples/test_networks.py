"""A network of one's own: a function in a table, whose keys are what `--network` takes."""

import subprocess
import sys

import flags
import networks
import pytest
from algorithm import NAMED, Algorithm
from DQNModel import Model

from tensorpack.compat import tfv1 as tf
from tests.examples.conftest import EXAMPLE
from tests.examples.small_dqn import refusal
from tests.examples.test_dqn_model import Built, names

LINE = ["--rom", "a.bin", "--network", "mine"]


def mine(image, layer):
    return layer("fc0", image / 255.0, 8, activation=tf.nn.relu)


def test_a_network_needs_a_function_in_the_table_alone(monkeypatch):
    monkeypatch.setitem(networks.NETWORKS, "mine", mine)
    Built(flags.parse(LINE).algorithm, frame_shape=(6, 6))
    weights = ["fc0/W", "fc0/b", "fct/W", "fct/b"]
    assert names(tf.trainable_variables()) == weights
    assert {f"target/{name}" for name in weights} < set(names(tf.global_variables()))
    with tf.Graph().as_default():
        Built(flags.parse([*LINE, "--noisy"]).algorithm, frame_shape=(6, 6))
        assert "fc0_sigma/W" in names(tf.trainable_variables())


def test_a_network_that_is_not_in_the_table_is_refused(capsys):
    said = refusal(capsys, flags.parse, LINE)
    assert "argument --network: invalid choice: 'mine'" in said and "nature" in said
    with pytest.raises(ValueError, match="network must be one of 2017, .* got 'mine'"):
        Model(4, Algorithm(network="mine"))


def test_what_a_named_algorithm_sets_is_the_default_of_its_flag(monkeypatch):
    monkeypatch.setitem(NAMED, "Mine", Algorithm(network="nature", n_step=3))
    line = ["--rom", "a.bin", "--algo", "Mine"]
    assert flags.parse(line).algorithm == NAMED["Mine"]
    assert flags.parse([*line, "--n-step", "1"]).algorithm == Algorithm(network="nature")
    assert flags.parse([*line, "--preset", "dopamine-dqn"]).network == "dopamine"


def test_the_command_line_does_not_load_tensorflow():
    line = ["--rom", "a.bin", "--network", "nature"]
    code = f"import flags, sys; flags.parse({line}); sys.exit('tensorflow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=str(EXAMPLE))
