"""Helpers that need nothing but Python and numpy: logging, randomness, progress, concurrency.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "argtools": (
        "execute_only_once graph_memoized log_once map_arg memoized memoized_ignoreargs "
        "memoized_method shape2d shape4d"
    ),
    "concurrency": (
        "DIE LoopThread OrderedContainer ShareSessionThread StoppableThread "
        "ensure_proc_terminate mask_sigint start_proc_mask_signal subproc_call"
    ),
    "fs": "download get_dataset_path mkdir_p normpath recursive_walk",
    "gpu": "change_env change_gpu get_nr_gpu get_num_gpu",
    "progress": "get_tqdm get_tqdm_kwargs",
    "rng": "fix_rng_seed get_rng",
    "stats": "Accuracy BinaryStatistics OnlineMoments RatioCounter StatCounter",
    "timer": (
        "IterSpeedCounter Timer humanize_time_delta print_total_timer timed_operation total_timer"
    ),
}
_HELPERS = {  # module -> names that others import from it, and that are not public
    "argtools": "accepts_old_keywords axis_order",
    "concurrency": "ProcessGroup enable_death_signal guard_thread set_parent_death_signal",
    "logger": (
        "LOG_DIR addFilter auto_set_dir close_logger_dir critical debug detail dir_of_process "
        "disable_logger error exception get_logger_dir info is_verbose setLevel set_logger_dir "
        "warn warning"
    ),
    "naming": (
        "GLOBAL_STEP_INCR_OP_NAME GLOBAL_STEP_INCR_VAR_NAME GLOBAL_STEP_OP_NAME "
        "GLOBAL_STEP_VAR_NAME LOCAL_STEP_OP_NAME LOCAL_STEP_VAR_NAME MOVING_SUMMARY_OPS_KEY "
        "PREDICT_TOWER SUMMARY_BACKUP_KEYS TOWER_FREEZE_KEYS is_loss_scale_name is_training_name"
    ),
    "nvml": "NvidiaDevice visible_devices",
    "palette": "PALETTE_RGB",
    "rect": "FloatBox Rect",
    "serialize": "FrameError MAX_BYTES dump_hashed load_frame load_hashed",
    "viz": (
        "draw_boxes dump_dataflow_images gen_stack_patches intensity_to_rgb interactive_imshow "
        "pyplot2img stack_patches"
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted([*_HOMES, "logger"])
