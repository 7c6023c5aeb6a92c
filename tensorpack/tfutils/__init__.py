"""TensorFlow helpers with no opinion about training: graphs, sessions, variables, checkpoints."""

from .argscope import argscope, get_arg_scope
from .checkpoint import (
    CheckpointCorrupt,
    get_all_checkpoints,
    get_checkpoint_path,
    load_checkpoint_vars,
    save_checkpoint_vars,
)
from .collection import backup_collection, freeze_collection, restore_collection
from .common import (
    get_default_sess_config,
    get_global_step_value,
    get_global_step_var,
    get_op_or_tensor_by_name,
    get_op_tensor_name,
    get_tensors_by_names,
    get_tf_version_tuple,
)
from .dependency import dependency_of_fetches, dependency_of_targets
from .exact_restore import VariableMismatch
from .gradproc import (
    CheckGradient,
    FilterNoneGrad,
    GlobalNormClip,
    GradientProcessor,
    MapGradient,
    PrintGradient,
    ScaleGradient,
    SummaryGradient,
)
from .init_from import InitFrom
from .loss_scale import LossScaleOptimizer
from .model_utils import describe_model, describe_trainable_vars, get_shape_str
from .optimizer import (
    AccumGradOptimizer,
    PostProcessOptimizer,
    ProxyOptimizer,
    VariableAssignmentOptimizer,
    apply_grad_processors,
)
from .precision import ComputeOptions
from .scope_utils import auto_reuse_variable_scope, cached_name_scope, under_name_scope
from .sesscreate import NewSessionCreator, ReuseSessionCreator, SessionCreatorAdapter
from .sessinit import (
    ChainInit,
    DictRestore,
    JustCurrentSession,
    SaverRestore,
    SaverRestoreRelaxed,
    SessionInit,
    SmartInit,
    TryResumeTraining,
    get_model_loader,
)
from .summary import (
    MOVING_SUMMARY_OPS_KEY,
    add_activation_summary,
    add_moving_summary,
    add_param_summary,
    add_tensor_summary,
    create_histogram_summary,
    create_scalar_summary,
)
from .tower import (
    BaseTowerContext,
    TowerContext,
    TowerFunc,
    TowerFuncWrapper,
    TowerTensorHandle,
    TowerTensorHandles,
    get_current_tower_context,
)
from .variables import VariablePairs, build_twin, record_variables
from .varmanip import (
    SessionUpdate,
    dump_chkpt_vars,
    dump_session_params,
    get_savename_from_varname,
    is_training_name,
    load_chkpt_vars,
    save_chkpt_vars,
)
from .varreplace import custom_getter_scope, freeze_variables, remap_variables

__all__ = [
    "AccumGradOptimizer",
    "BaseTowerContext",
    "ChainInit",
    "CheckGradient",
    "CheckpointCorrupt",
    "ComputeOptions",
    "DictRestore",
    "FilterNoneGrad",
    "GlobalNormClip",
    "GradientProcessor",
    "InitFrom",
    "JustCurrentSession",
    "LossScaleOptimizer",
    "MOVING_SUMMARY_OPS_KEY",
    "MapGradient",
    "NewSessionCreator",
    "PostProcessOptimizer",
    "PrintGradient",
    "ProxyOptimizer",
    "ReuseSessionCreator",
    "SaverRestore",
    "SaverRestoreRelaxed",
    "ScaleGradient",
    "SessionCreatorAdapter",
    "SessionInit",
    "SessionUpdate",
    "SmartInit",
    "SummaryGradient",
    "TowerContext",
    "TowerFunc",
    "TowerFuncWrapper",
    "TowerTensorHandle",
    "TowerTensorHandles",
    "TryResumeTraining",
    "VariableAssignmentOptimizer",
    "VariableMismatch",
    "VariablePairs",
    "add_activation_summary",
    "add_moving_summary",
    "add_param_summary",
    "add_tensor_summary",
    "apply_grad_processors",
    "argscope",
    "auto_reuse_variable_scope",
    "backup_collection",
    "build_twin",
    "cached_name_scope",
    "create_histogram_summary",
    "create_scalar_summary",
    "custom_getter_scope",
    "dependency_of_fetches",
    "dependency_of_targets",
    "describe_model",
    "describe_trainable_vars",
    "dump_chkpt_vars",
    "dump_session_params",
    "freeze_collection",
    "freeze_variables",
    "get_all_checkpoints",
    "get_arg_scope",
    "get_checkpoint_path",
    "get_current_tower_context",
    "get_default_sess_config",
    "get_global_step_value",
    "get_global_step_var",
    "get_model_loader",
    "get_op_or_tensor_by_name",
    "get_op_tensor_name",
    "get_savename_from_varname",
    "get_shape_str",
    "get_tensors_by_names",
    "get_tf_version_tuple",
    "is_training_name",
    "load_checkpoint_vars",
    "load_chkpt_vars",
    "record_variables",
    "remap_variables",
    "restore_collection",
    "save_checkpoint_vars",
    "save_chkpt_vars",
    "under_name_scope",
]
