"""TensorFlow helpers with no opinion about training: graphs, sessions, variables, checkpoints.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "argscope": "argscope enable_argscope_for_function enable_argscope_for_module get_arg_scope",
    "checkpoint": "get_checkpoint_path load_checkpoint_vars save_checkpoint_vars",
    "common": (
        "collect_env_info get_default_sess_config get_global_step_value get_global_step_var "
        "get_op_or_tensor_by_name get_op_tensor_name get_tensors_by_names get_tf_version_number "
        "get_tf_version_tuple"
    ),
    "dependency": "dependency_of_fetches dependency_of_targets",
    "gradproc": (
        "CheckGradient FilterNoneGrad GlobalNormClip GradientProcessor MapGradient "
        "PrintGradient ScaleGradient SummaryGradient"
    ),
    "graph": (
        "auto_reuse_variable_scope backup_collection cached_name_scope freeze_collection "
        "get_name_scope_name restore_collection under_name_scope"
    ),
    "loss_scale": "LossScaleOptimizer",
    "model_utils": "describe_model describe_trainable_vars get_shape_str",
    "optimizer": (
        "AccumGradOptimizer PostProcessOptimizer ProxyOptimizer VariableAssignmentOptimizer "
        "apply_grad_processors"
    ),
    "precision": "ComputeOptions",
    "sesscreate": "NewSessionCreator ReuseSessionCreator SessionCreatorAdapter",
    "sessinit": (
        "ChainInit DictRestore InitFrom JustCurrentSession ParamRestore SaverRestore "
        "SaverRestoreRelaxed SessionInit SmartInit TryResumeTraining VariableMismatch "
        "get_model_loader"
    ),
    "summary": (
        "MOVING_SUMMARY_OPS_KEY add_activation_summary add_moving_summary add_param_summary "
        "add_tensor_summary create_histogram_summary create_scalar_summary"
    ),
    "tower": (
        "BaseTowerContext TowerContext TowerFunc TowerFuncWrapper TowerTensorHandle "
        "TowerTensorHandles get_current_tower_context"
    ),
    "variables": "VariablePairs build_twin record_variables",
    "tensorpack.utils.checkpoints.files": "CheckpointCorrupt",
    "tensorpack.utils.checkpoints.find": "get_all_checkpoints",
    "varmanip": (
        "SessionUpdate dump_chkpt_vars dump_session_params get_savename_from_varname "
        "is_training_name load_chkpt_vars save_chkpt_vars"
    ),
    "varreplace": (
        "custom_getter_scope freeze_get_variable freeze_variables remap_get_variable "
        "remap_variables replace_get_variable"
    ),
}
_HELPERS = {  # module -> names that other modules import from it, and that are not public
    "argscope": "Converted Layer call_logged translate",
    "common": "PerGraph as_signature get_tensor_of_graph precise root_variable",
    "dependency": "ancestors ops_of_fetches",
    "gradproc": "map_values values_of",
    "graph": "clear_collection under_variable_scope",
    "model_utils": "apply_slim_collections",
    "optimizer": "apply_to_replicas",
    "sessinit": "CheckpointReaderAdapter ExactRestore",
    "summary": (
        "add_tagged_moving_summary average_states half_square op_name_of_tag root_mean_square "
        "tag_of_tensor"
    ),
    "symbolic_functions": (
        "CategoricalDistribution Distribution GaussianDistribution ProductDistribution accuracy "
        "class_balanced_cross_entropy class_balanced_sigmoid_cross_entropy contrastive_loss "
        "flatten get_scalar_var guided_relu huber_loss prediction_incorrect print_stat psnr "
        "saliency_map shapeless_placeholder siamese_cosine_loss soft_triplet_loss triplet_loss"
    ),
    "tower": "in_main_training_tower",
    "varmanip": (
        "fit_value get_checkpoint_path known_of_graph load_checkpoint_vars load_named_values "
        "mismatch_table save_checkpoint_vars weights_of"
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
