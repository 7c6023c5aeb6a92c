"""Names of ops, collections and variables that parts of the library agree on."""

GLOBAL_STEP_INCR_OP_NAME = "global_step_incr"  # the op that counts the steps; it has no output
GLOBAL_STEP_OP_NAME, GLOBAL_STEP_VAR_NAME = "global_step", "global_step:0"
PREDICT_TOWER = "towerp"  # how the names of towers that predict begin
GLOBAL_STEP_INCR_VAR_NAME = "global_step_incr:0"

# For scripts of 2017. The number of the step in its epoch is kept by the trainer, not in the graph.
LOCAL_STEP_OP_NAME = "local_step"
LOCAL_STEP_VAR_NAME = "local_step:0"

MOVING_SUMMARY_OPS_KEY = "MOVING_SUMMARY_OPS"  # collection of the ops that update moving averages
SUMMARY_BACKUP_KEYS = ["summaries", MOVING_SUMMARY_OPS_KEY]
# What only the main training tower may add to: the other towers repeat the same model.
TOWER_FREEZE_KEYS = [*SUMMARY_BACKUP_KEYS, "update_ops"]

_SLOT_NAMES = frozenset(
    ["beta1_power", "beta2_power"]
    + "AccumGrad Adadelta Adagrad AdagradDA Adam Ftrl Momentum RMSProp".split()
)


def is_loss_scale_name(name: str) -> bool:
    """Returns whether this names a variable of a `LossScaleOptimizer`."""
    return name.startswith("loss_scale") and name.endswith(("/scale", "/good_steps"))


def is_training_name(name: str) -> bool:
    """Returns whether this names a variable that only training uses.

    Those are what optimizers keep for each variable, and the averages of summaries; the moments of
    a batch normalisation, `.../mean/EMA` and `.../variance/EMA`, are weights. A checkpoint knows
    nothing but names, so a variable of the user's called `Adam` counts as well.
    """
    parts = (name[:-2] if name.endswith(":0") else name).split("/")
    last, _, number = parts[-1].rpartition("_")
    slot = last if number.isdigit() else parts[-1]
    if slot in _SLOT_NAMES or parts[0] in ("EMA", "AccumGrad"):
        return True
    return "EMA" in parts and parts[parts.index("EMA") - 1] not in ("mean", "variance")
