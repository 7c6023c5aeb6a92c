"""The pages of the reference: which names each has, and which guides explain them.

A name without dots is one of `tensorpack`; others are listed behind the address that they have in
it, as in `dataflow.imgaug: Flip`. A public name that no page lists ends `make docs`, and so does
one that is listed twice.
"""

from typing import NamedTuple, Tuple

__all__ = ["SECTIONS", "TASKS", "Task"]


class Task(NamedTuple):
    """A page: the guides to see, as paths of pages in `docs`, and lines of names in their order."""

    guides: Tuple[str, ...]
    names: Tuple[str, ...]


TASKS = {
    # Data
    "Sources": Task(
        ("dataflow#sources", "tutorials/02-dataflow"),
        (
            "DataFromList DataFromIterable DataFromGenerator DataFromQueue FakeData CacheData",
            "SharedList",
        ),
    ),
    "Own dataflows": Task(
        ("tutorials/02-dataflow", "dataflow"),
        ("DataFlow RNGDataFlow ProxyDataFlow DataFlowTerminated StateNotKept UnknownLength",),
    ),
    "Batches": Task(
        ("dataflow", "howto/data"),
        (
            "BatchData BatchDataByShape FixedSizeData RepeatedData RepeatedDataPoint",
            "LocallyShuffleData PrintData TestDataSpeed",
        ),
    ),
    "Join and select": Task(
        ("dataflow", "howto/data"),
        ("JoinData ConcatData RandomChooseData RandomMixData SelectComponent FilterData",),
    ),
    "Map and processes": Task(
        ("dataflow", "howto/speed"),
        (
            "MapData MapDataComponent RandomMapData MultiThreadMapData MultiProcessMapData",
            "MultiProcessMapAndBatchData WorkerDied WorkerFailed",
        ),
    ),
    "Runners and machines": Task(
        ("dataflow", "howto/speed"),
        (
            "MultiProcessRunner MultiProcessRunnerZMQ MultiThreadRunner PrefetchOnGPUs",
            "RemoteDataZMQ RemoteSender make_remote_key send_dataflow_zmq",
            "dataflow.dftools: dump_dataflow_to_process_queue",
        ),
    ),
    "Files": Task(
        ("dataflow", "howto/data"),
        (
            "LMDBSerializer LMDBData LMDBDataDecoder LMDBDataPoint CaffeLMDB convert_old_lmdb",
            "TFRecordSerializer TFRecordData TFRecordBytes HDF5Serializer HDF5Data",
            "NumpySerializer CSVData SVMLightData DamagedFile",
        ),
    ),
    "Images": Task(
        ("augmentors", "datasets", "dataflow"),
        (
            "ImageFolder ImageFromFile ImageFromList DecodeImageComponent EncodeImageComponent",
            "AugmentImageComponent AugmentImageComponents AugmentImageCoordinates",
        ),
    ),
    "Drawing": Task(
        ("augmentors",),
        (
            "dataflow.dftools: dump_dataflow_images",
            "utils.viz: stack_patches gen_stack_patches draw_boxes intensity_to_rgb pyplot2img",
            "utils.viz: interactive_imshow dump_dataflow_images",
            "utils.rect: Rect",
        ),
    ),
    "Datasets": Task(
        ("datasets",),
        (
            "dataflow.dataset: Mnist FashionMnist Cifar10 Cifar100 CifarBase SVHNDigit",
            "dataflow.dataset: ILSVRC12 ILSVRC12Files ILSVRCMeta TinyImageNet Places365Standard",
            "dataflow.dataset: BSDS500 Caltech101Silhouettes VisualQA",
        ),
    ),
    "Crop and resize": Task(
        ("augmentors",),
        (
            "dataflow.imgaug: Resize ResizeShortestEdge RandomResize CenterCrop RandomCrop",
            "dataflow.imgaug: RandomCropRandomShape RandomCropAroundBox RandomCutout",
            "dataflow.imgaug: GoogleNetRandomCropAndResize CenterPaste RandomPaste",
            "dataflow.imgaug: BackgroundFiller ConstantBackgroundFiller perturb_BB",
        ),
    ),
    "Flip and rotate": Task(
        ("augmentors",),
        (
            "dataflow.imgaug: Flip Transpose Rotation RotationAndCropValid Shift Affine",
            "dataflow.imgaug: GaussianDeform RandomApplyAug RandomChooseAug RandomOrderAug",
            "dataflow.imgaug: AugmentorList Identity MapImage",
        ),
    ),
    "Colour and noise": Task(
        ("augmentors",),
        (
            "dataflow.imgaug: Brightness BrightnessScale Contrast Gamma Hue Saturation Lighting",
            "dataflow.imgaug: Grayscale ColorSpace Clip MeanVarianceNormalize MinMaxNormalize",
            "dataflow.imgaug: GaussianBlur GaussianNoise SaltPepperNoise JpegNoise",
            "dataflow.imgaug: ToFloat32 ToUint8",
        ),
    ),
    "Own augmentors": Task(
        ("augmentors",),
        (
            "dataflow.imgaug: ImageAugmentor PhotometricAugmentor Transform TransformList",
            "dataflow.imgaug: TransformFactory NoOpTransform PhotometricTransform CropTransform",
            "dataflow.imgaug: FlipTransform PasteTransform RemapTransform ResizeTransform",
            "dataflow.imgaug: ShiftTransform TransposeTransform WarpAffineTransform Target",
            "dataflow.imgaug: AugmentationError Albumentations IAAugmentor",
        ),
    ),
    # Models
    "Model descriptions": Task(
        ("trainers", "tutorials/01-classifier"),
        (
            "ModelDesc ModelDescBase TowerContext BaseTowerContext get_current_tower_context",
            "TowerFunc TowerTensorHandle TowerTensorHandles build_twin",
            "tfutils.tower: TrainTowerContext PredictTowerContext in_main_training_tower",
            "compat: TensorSpec tfv1",
        ),
    ),
    "Layers": Task(
        ("models",),
        (
            "Conv2D Conv2DTranspose Conv3D DepthwiseConv2D FullyConnected MaxPooling AvgPooling",
            "GlobalAvgPooling MaxPooling3D AvgPooling3D Dropout ConcatWith ImageSample",
            "BilinearUpSample FixedUnPooling",
        ),
    ),
    "Normalization": Task(
        ("models",),
        (
            "BatchNorm BatchRenorm LayerNorm InstanceNorm GroupNorm BNReLU LeakyReLU PReLU Maxout",
            "SoftMax l1_regularizer l2_regularizer regularize_cost",
            "regularize_cost_from_collection",
        ),
    ),
    "Layer options": Task(
        ("models",),
        (
            "argscope get_arg_scope enable_argscope_for_function enable_argscope_for_module",
            "LinearWrap VariableHolder layer_register get_registered_layer disable_layer_logging",
            "StaticDynamicAxis StaticDynamicShape rename_tflayer_get_variable",
        ),
    ),
    "Losses": Task(
        ("models", "trainers"),
        (
            "tfutils.symbolic_functions: accuracy prediction_incorrect huber_loss psnr rms",
            "tfutils.symbolic_functions: class_balanced_cross_entropy",
            "tfutils.symbolic_functions: class_balanced_sigmoid_cross_entropy",
            "tfutils.symbolic_functions: contrastive_loss siamese_cosine_loss triplet_loss",
            "tfutils.symbolic_functions: soft_triplet_loss batch_flatten flatten get_scalar_var",
            "tfutils.symbolic_functions: guided_relu saliency_map print_stat",
            "tfutils.symbolic_functions: shapeless_placeholder",
            "tfutils.distributions: Distribution CategoricalDistribution GaussianDistribution",
            "tfutils.distributions: ProductDistribution",
            "tfutils.model_utils: apply_slim_collections",
            "separate_costs",
        ),
    ),
    "Gradients": Task(
        ("trainers", "tutorials/05-losses"),
        (
            "apply_grad_processors GradientProcessor GlobalNormClip MapGradient ScaleGradient",
            "SummaryGradient PrintGradient CheckGradient FilterNoneGrad ProxyOptimizer",
            "AccumGradOptimizer LossScaleOptimizer OptimizerPerScope PostProcessOptimizer",
            "VariableAssignmentOptimizer",
            "tfutils.gradproc: map_values",
            "tfutils.optimizer: apply_to_replicas",
        ),
    ),
    "Variables and scopes": Task(
        ("models", "weights"),
        (
            "record_variables VariablePairs freeze_variables remap_variables custom_getter_scope",
            "auto_reuse_variable_scope cached_name_scope under_name_scope get_name_scope_name",
            "backup_collection freeze_collection restore_collection get_global_step_var",
            "get_global_step_value get_op_or_tensor_by_name get_op_tensor_name",
            "get_tensors_by_names get_shape_str dependency_of_fetches dependency_of_targets",
            "tfutils.scope_utils: under_variable_scope",
            "tfutils.collection: clear_collection",
        ),
    ),
    # Training
    "Training": Task(
        ("quickstart", "resuming", "errors"),
        (
            "TrainConfig launch_train_with_config prepare_log_dir DEFAULT_CALLBACKS",
            "DEFAULT_MONITORS StopTraining TrainingInterrupted DataEnded QueueClosed PeerLost",
        ),
    ),
    "Trainers": Task(
        ("trainers",),
        (
            "SimpleTrainer Trainer TowerTrainer SingleCostTrainer NoOpTrainer",
            "NewSessionCreator ReuseSessionCreator SessionCreatorAdapter",
            "get_default_sess_config ComputeOptions apply_default_prefetch",
        ),
    ),
    "Several GPUs": Task(
        ("tutorials/06-several-gpus", "scaling", "distributed"),
        (
            "SyncMultiGPUTrainerReplicated SyncMultiGPUTrainerParameterServer",
            "AsyncMultiGPUTrainer SyncMultiGPUTrainer CollectiveTrainer",
            "DistributedTrainerReplicated DistributedTrainerParameterServer HorovodTrainer",
            "BytePSTrainer DataParallelBuilder LeastLoadedDeviceSetter allreduce_grads",
        ),
    ),
    "Inputs": Task(
        ("inputs",),
        (
            "QueueInput FeedInput TFDatasetInput TensorInput PlaceholderInput StagingInput",
            "ZMQInput DummyConstantInput DataParallelFeedInput InputSource FeedfreeInput",
            "EnqueueThread remap_input_source DatapointChecker DataFlowEmpty",
        ),
    ),
    # Callbacks
    "Saving": Task(
        ("resuming", "runs", "tutorials/04-saving"),
        (
            "ModelSaver MinSaver MaxSaver get_checkpoint_path get_all_checkpoints",
            "load_checkpoint_vars save_checkpoint_vars dump_session_params CheckpointCorrupt",
            "get_savename_from_varname is_training_name",
            "tfutils.varmanip: weights_of",
        ),
    ),
    "Validation": Task(
        ("validation", "howto/validation"),
        (
            "InferenceRunner DataParallelInferenceRunner InferenceRunnerBase ScalarStats",
            "ClassificationError BinaryClassificationStats Inferencer EarlyStop",
        ),
    ),
    "Schedules": Task(
        ("howto/learning-rate",),
        (
            "ScheduledHyperParamSetter HyperParamSetterWithFunc StatMonitorParamSetter",
            "SampleScheduledHyperParamSetter HumanHyperParamSetter HyperParamSetter HyperParam",
            "GraphVarParam ObjAttrParam",
        ),
    ),
    "Monitors": Task(
        ("callbacks", "runs"),
        (
            "ScalarPrinter JSONWriter CSVMonitor TFEventWriter WandbMonitor CometMLMonitor",
            "SendMonitorData SendStat MonitorBase Monitors ScalarRecord RunReport write_report",
        ),
    ),
    "Summaries": Task(
        ("callbacks", "howto/validation"),
        (
            "add_moving_summary create_scalar_summary create_histogram_summary",
            "add_activation_summary add_param_summary add_tensor_summary MovingAverageSummary",
            "MergeAllSummaries SimpleMovingAverage MOVING_SUMMARY_OPS_KEY",
            "tfutils.summary: add_tagged_moving_summary average_states op_name_of_tag",
            "tfutils.summary: root_mean_square tag_of_tensor",
        ),
    ),
    "Progress and speed": Task(
        ("profiling", "callbacks"),
        (
            "ProgressBar EstimatedTimeLeft TimeReport ThroughputTracker SampleCounter",
            "MaintainStepCounter GPUUtilizationTracker GPUMemoryTracker HostMemoryTracker",
            "GraphProfiler describe_trainable_vars describe_flops count_flops",
            "collect_env_info",
        ),
    ),
    "Debugging": Task(
        ("howto/debugging", "errors"),
        (
            "TensorPrinter DumpTensors DumpTensorAsImage ProcessTensors CheckNumerics",
            "StopIfNonFinite NonFiniteError Watchdog StalledTraining SessionRunTimeout",
            "InjectShell TFLocalCLIDebugHook",
        ),
    ),
    "Own callbacks": Task(
        ("tutorials/03-callbacks", "callbacks", "design/run"),
        (
            "Callback PeriodicTrigger PeriodicCallback PeriodicRunHooks EnableCallbackIf RunOp",
            "RunUpdateOps CallbackFactory StartProcOrThread ProxyCallback Callbacks",
            "CallbackToHook HookToCallback",
        ),
    ),
    # After the training
    "Weights and export": Task(
        ("weights", "howto/weights"),
        (
            "SmartInit SaverRestore DictRestore ChainInit InitFrom SessionInit SessionUpdate",
            "TryResumeTraining VariableMismatch",
            "tfutils.sessinit: ExactRestore",
            "tfutils.varmanip: fit_value",
            "ModelExporter",
        ),
    ),
    "Prediction": Task(
        ("predicting", "howto/prediction"),
        (
            "OfflinePredictor PredictConfig OnlinePredictor PredictorBase PredictorFactory",
            "MultiTowerOfflinePredictor DataParallelOfflinePredictor SimpleDatasetPredictor",
            "MultiProcessDatasetPredictor DatasetPredictorBase MultiThreadAsyncPredictor",
            "AsyncPredictorBase MultiProcessQueuePredictWorker FeedfreePredictor",
        ),
    ),
    "Environments": Task(
        ("learning", "tutorials/07-dqn", "howto/reinforcement-learning"),
        (
            "RL: Player PlayerStep AtariPlayers GymPlayers FrameHistory LimitLength PreventStuck",
            "RL: find_rom check_rom",
        ),
    ),
    "Replay memory": Task(
        ("learning", "tutorials/07-dqn"),
        ("RL: ReplayMemory PrioritizedReplay Batch WeightedBatch NStepBatch epsilon_greedy",),
    ),
    # Tools
    "Logger and files": Task(
        ("runs",),
        (
            "logger log_once get_tqdm get_tqdm_kwargs download get_dataset_path mkdir_p normpath",
            "recursive_walk",
            "utils.serialize: dumps loads load_frame dump_hashed load_hashed FrameError MAX_BYTES",
            "utils.serialize: MAX_FILE_BYTES MAX_STRUCTURE_BYTES",
        ),
    ),
    "Threads and processes": Task(
        ("design/threads",),
        (
            "StoppableThread LoopThread ShareSessionThread start_proc_mask_signal mask_sigint",
            "ensure_proc_terminate subproc_call change_env change_gpu get_num_gpu",
            "utils.concurrency: ProcessGroup OrderedResultGatherProc guard_thread",
            "utils.concurrency: enable_death_signal set_parent_death_signal",
        ),
    ),
    "Statistics and timers": Task(
        ("callbacks",),
        (
            "StatCounter RatioCounter OnlineMoments Accuracy BinaryStatistics Timer",
            "timed_operation IterSpeedCounter total_timer print_total_timer humanize_time_delta",
        ),
    ),
    "Random and cached": Task(
        ("resuming",),
        (
            "get_rng fix_rng_seed memoized memoized_ignoreargs memoized_method graph_memoized",
            "execute_only_once map_arg shape2d shape4d",
            "utils.argtools: call_only_once get_data_format",
            "utils.discretize: UniformDiscretizer1D UniformDiscretizerND",
            "utils.lut: LookUpTable",
        ),
    ),
    "TensorFlow versions": Task(
        ("migration", "design/layers"),
        (
            "get_tf_version_tuple",
            "compat: tf_version is_tfv2 backport_tensor_spec forward_op gpu_memory_peak in_branch",
            "compat: is_closed is_name_of_tf1 load_keras local_cli_debug_hook make_raw_callable",
            "compat: nccl_all_sum replace_input run_after",
        ),
    ),
    # Names of 2017 and 0.11, and others that are kept for old scripts
    "Old data names": Task(
        ("migration",),
        (
            "PrefetchData PrefetchDataZMQ MultiProcessPrefetchData MultiThreadPrefetchData",
            "MultiProcessMapDataZMQ MultiProcessMapAndBatchDataZMQ ThreadedMapData",
            "dataflow.imgaug: Augmentor",
            "dataflow.dftools: dump_dataflow_to_lmdb dump_dataflow_to_tfrecord",
            "utils.rect: BoxBase FloatBox IntBox",
        ),
    ),
    "Old training names": Task(
        ("migration",),
        (
            "Triggerable TrainingMonitor TFSummaryWriter StepTensorPrinter DumpTensor",
            "DumpParamAsImage PeakMemoryTracker FeedfreeInferenceRunner",
            "InputDesc InputVar BatchQueueInput StagingInputWrapper Deconv2D get_predict_func",
            "MultiProcessPredictWorker ModelExport ParamRestore JustCurrentSession",
            "SaverRestoreRelaxed TowerFuncWrapper describe_model load_chkpt_vars dump_chkpt_vars",
            "save_chkpt_vars freeze_get_variable remap_get_variable replace_get_variable",
            "get_model_loader AutoResumeTrainConfig QueueInputTrainer SimpleFeedfreeTrainer",
            "FeedfreeTrainerBase SingleCostFeedfreeTrainer MultiGPUTrainerBase",
            "DistributedReplicatedTrainer",
        ),
    ),
    "Old players": Task(
        ("migration", "howto/reinforcement-learning"),
        (
            "RL: RLEnvironment NaiveRLEnvironment GymEnv ProxyPlayer AutoRestartPlayer",
            "RL: HistoryFramePlayer LimitLengthPlayer PreventStuckPlayer MapPlayerState",
            "RL: DiscreteActionSpace",
        ),
    ),
    "Old tools": Task(
        ("migration",),
        (
            "get_tf_version_number get_nr_gpu DIE OrderedContainer",
            "utils.globvars: GlobalNS globalns use_global_argument",
            "utils.debug: enable_call_trace",
            "utils.argtools: accepts_old_keywords",
            "utils.develop: HIDE_DOC LazyLoader NonPicklableWrapper building_rtfd",
            "utils.develop: create_dummy_class create_dummy_func deprecated log_deprecated",
        ),
    ),
}

# The sections of the index of the reference -> the first page of each.
SECTIONS = {
    "Data": "Sources",
    "Models": "Model descriptions",
    "Training": "Training",
    "Callbacks": "Saving",
    "After the training": "Weights and export",
    "Reinforcement learning": "Environments",
    "Tools": "Logger and files",
    "Names of 2017 and 0.11": "Old data names",
    "All names": "Packages",
}
