"""The names are those under which TensorFlow and our own parts know the things."""

from tensorpack.utils import naming


def test_outputs_are_those_of_the_ops():
    assert naming.GLOBAL_STEP_INCR_VAR_NAME == naming.GLOBAL_STEP_INCR_OP_NAME + ":0"
    assert naming.LOCAL_STEP_VAR_NAME == naming.LOCAL_STEP_OP_NAME + ":0"
