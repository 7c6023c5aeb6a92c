"""Names of ops and collections that parts of the library agree on."""

__all__ = [
    "GLOBAL_STEP_INCR_OP_NAME",
    "GLOBAL_STEP_INCR_VAR_NAME",
    "LOCAL_STEP_OP_NAME",
    "LOCAL_STEP_VAR_NAME",
    "MOVING_SUMMARY_OPS_KEY",
    "SUMMARY_BACKUP_KEYS",
    "TOWER_FREEZE_KEYS",
]

GLOBAL_STEP_INCR_OP_NAME = "global_step_incr"  # the op that counts the steps; it has no output
GLOBAL_STEP_INCR_VAR_NAME = "global_step_incr:0"

# For scripts of 2017. The number of the step in its epoch is kept by the trainer, not in the graph.
LOCAL_STEP_OP_NAME = "local_step"
LOCAL_STEP_VAR_NAME = "local_step:0"

MOVING_SUMMARY_OPS_KEY = "MOVING_SUMMARY_OPS"  # collection of the ops that update moving averages
SUMMARY_BACKUP_KEYS = ["summaries", MOVING_SUMMARY_OPS_KEY]
# What only the main training tower may add to: the other towers repeat the same model.
TOWER_FREEZE_KEYS = [*SUMMARY_BACKUP_KEYS, "update_ops"]
