"""Tests that compat names the installed TensorFlow and offers what the package builds on."""

import pytest
import tensorflow

from tensorpack import compat


def test_version_is_that_of_the_installed_tensorflow():
    assert compat.tf_version()[:2] == tuple(
        int(part) for part in tensorflow.__version__.split(".")[:2]
    )
    assert len(compat.tf_version()) == 3


@pytest.mark.parametrize(
    "text, numbers",
    [
        ("1.15.5", (1, 15, 5)),
        ("2.16.0-rc1", (2, 16, 0)),
        ("2.22.0.dev2026", (2, 22, 0)),
        ("3.0", (3, 0, 0)),
    ],
)
def test_version_of_release_candidates_and_nightlies(monkeypatch, text, numbers):
    monkeypatch.setattr(compat.tfv1, "__version__", text)
    assert compat.tf_version() == numbers
    assert compat.is_tfv2() == (numbers[0] >= 2)


def test_tfv1_is_the_graph_mode_module():
    # TensorFlow 1.15 has the module under two names, so its contents are compared.
    assert compat.tfv1.Session is tensorflow.compat.v1.Session
    assert compat.tfv1.get_variable is tensorflow.compat.v1.get_variable


def test_tensor_spec_keeps_shape_dtype_and_name():
    spec = compat.TensorSpec([None, 3], compat.tfv1.float32, "image")
    assert (spec.shape.as_list(), spec.dtype, spec.name) == (
        [None, 3],
        compat.tfv1.float32,
        "image",
    )
