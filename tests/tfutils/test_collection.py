"""Tests of saving, restoring and freezing graph collections."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.collection import (
    backup_collection,
    clear_collection,
    freeze_collection,
    restore_collection,
)


def test_backup_is_a_copy_and_restore_and_clear_keep_the_list_that_others_hold():
    held = tf.get_collection_ref("a")
    held.append(1)
    backup = backup_collection(["a", "b"])
    tf.add_to_collection("a", 2)
    tf.add_to_collection("b", 3)
    assert backup == {"a": [1], "b": []}
    assert {"a": [1, 2], "b": [3]}.items() <= backup_collection().items()
    restore_collection(backup)
    assert held == tf.get_collection("a") == [1]
    assert tf.get_collection("b") == []
    clear_collection(["a", "c"])
    assert held == tf.get_collection("c") == []


def test_freeze_undoes_additions_also_after_an_error_and_leaves_other_collections():
    tf.add_to_collection("a", 1)
    with freeze_collection(["a"]):
        tf.add_to_collection("a", 2)
        tf.add_to_collection("b", 3)
        assert tf.get_collection("a") == [1, 2]
    assert tf.get_collection("a") == [1]
    with pytest.raises(ZeroDivisionError), freeze_collection(["a"]):
        tf.add_to_collection("a", 2)
        raise ZeroDivisionError
    assert tf.get_collection("a") == [1]
    assert tf.get_collection("b") == [3]
