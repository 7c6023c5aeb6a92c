"""Names of ops and of their outputs agree."""

from tensorpack.utils import naming


def test_outputs_are_those_of_the_ops():
    assert naming.GLOBAL_STEP_INCR_VAR_NAME == naming.GLOBAL_STEP_INCR_OP_NAME + ":0"
    assert naming.LOCAL_STEP_VAR_NAME == naming.LOCAL_STEP_OP_NAME + ":0"
