"""The public names of tensorpack, and which package owns each.

`scripts/public_names` writes the two tables from the packages' own `__all__`.
"""

_MODULES = {  # package -> its packages and modules that the root has as attributes
    # begin modules
    "tensorpack": (
        "RL callbacks compat contrib dataflow graph_builder input_source models predict report "
        "runs tfutils train utils"
    ),
    "tensorpack.dataflow": "dataset dftools imgaug",
    "tensorpack.predict": "export",
    "tensorpack.tfutils": (
        "gradproc model_utils optimizer sesscreate sessinit summary symbolic_functions tower "
        "varmanip varreplace"
    ),
    "tensorpack.utils": "argtools concurrency fs rect serialize stats timer viz",
    "tensorpack.utils.of_2017": "debug develop discretize globvars lut",
    # end modules
}
MODULES = {name: f"{home}.{name}" for home, names in _MODULES.items() for name in names.split()}

_NAMES = {  # package or module -> its public names
    # begin names
    "RL": (
        "Agent AtariPlayers AutoRestartPlayer Batch DiscreteActionSpace Episode EpisodeCounter "
        "EpisodeLog FrameHistory GameVideo GymEnv GymPlayers HistoryFramePlayer LimitIdle "
        "LimitLength LimitLengthPlayer MapPlayerState NStepBatch Pacer Player PlayerStep "
        "PreventStuck PreventStuckPlayer PrioritizedReplay ProxyPlayer RLEnvironment "
        "RandomActions ReplayMemory RunScores Simulator SimulatorThread VideoFile WeightedBatch "
        "check_rom epsilon_greedy find_rom open_screen read_scores restore_games"
    ),
    "callbacks": (
        "BinaryClassificationStats Callback CallbackFactory CallbackToHook Callbacks "
        "CheckNumerics ClassificationError CometMLMonitor DataParallelInferenceRunner "
        "DumpParamAsImage DumpTensor DumpTensorAsImage DumpTensors EarlyStop EnableCallbackIf "
        "EstimatedTimeLeft FeedfreeInferenceRunner GPUMemoryTracker GPUUtilizationTracker "
        "GraphProfiler GraphVarParam HookToCallback HostMemoryTracker HumanHyperParamSetter "
        "HyperParam HyperParamSetter HyperParamSetterWithFunc InferenceRunner InferenceRunnerBase "
        "Inferencer InjectShell JSONWriter MaintainStepCounter MaxSaver MergeAllSummaries "
        "MinSaver ModelSaver MonitorBase Monitors MovingAverageSummary NonFiniteError "
        "ObjAttrParam PeakMemoryTracker PeriodicCallback PeriodicRunHooks PeriodicTrigger "
        "ProcessTensors ProgressBar ProxyCallback RunOp RunReport RunUpdateOps ScalarPrinter "
        "ScalarRecord ScalarStats ScheduledHyperParamSetter SendMonitorData SendStat "
        "SessionRunTimeout SimpleMovingAverage StalledTraining StartProcOrThread "
        "StatMonitorParamSetter StepTensorPrinter StopIfNonFinite TFEventWriter "
        "TFLocalCLIDebugHook TFSummaryWriter TensorPrinter ThroughputTracker TimeReport "
        "TrainingMonitor Triggerable Watchdog"
    ),
    "compat": "tfv1",
    "dataflow": (
        "AugmentImageComponent AugmentImageComponents AugmentImageCoordinates BatchData "
        "BatchDataByShape CacheData CaffeLMDB ConcatData DamagedFile DataFlow DataFlowTerminated "
        "DataFromGenerator DataFromIterable DataFromList DataFromQueue DecodeImageComponent "
        "FakeData FilterData FixedSizeData HDF5Data HDF5Serializer ImageFolder ImageFromFile "
        "ImageFromList JoinData LMDBData LMDBDataDecoder LMDBDataPoint LMDBSerializer "
        "LocallyShuffleData MapData MapDataComponent MultiProcessMapAndBatchData "
        "MultiProcessMapAndBatchDataZMQ MultiProcessMapData MultiProcessMapDataZMQ "
        "MultiProcessPrefetchData MultiProcessRunner MultiProcessRunnerZMQ MultiThreadMapData "
        "MultiThreadPrefetchData MultiThreadRunner NumpySerializer PrefetchData PrefetchDataZMQ "
        "PrefetchOnGPUs PrintData ProxyDataFlow RNGDataFlow RandomChooseData RandomMapData "
        "RandomMixData RecordFile RecordsFlow RemoteDataZMQ RepeatedData RepeatedDataPoint "
        "SVMLightData SelectComponent SharedList StateNotKept TFRecordBytes TFRecordData "
        "TFRecordSerializer TestDataSpeed ThreadedMapData UnknownLength WorkerDied WorkerFailed "
        "make_remote_key send_dataflow_zmq write_records"
    ),
    "graph_builder": (
        "DataParallelBuilder InputDesc InputVar LeastLoadedDeviceSetter ModelDesc ModelDescBase "
        "allreduce_grads"
    ),
    "input_source": (
        "BatchQueueInput DataFlowEmpty DataParallelFeedInput DatapointChecker DummyConstantInput "
        "EnqueueThread FeedInput FeedfreeInput InputSource PlaceholderInput QueueInput "
        "StagingInput StagingInputWrapper TFDatasetInput TensorInput ZMQInput remap_input_source"
    ),
    "models": (
        "AvgPooling AvgPooling3D BNReLU BatchNorm BatchRenorm BilinearUpSample ConcatWith Conv2D "
        "Conv2DTranspose Conv3D Deconv2D DepthwiseConv2D Dropout FixedUnPooling FullyConnected "
        "GlobalAvgPooling GroupNorm ImageSample InstanceNorm LayerNorm LeakyReLU LinearWrap "
        "MaxPooling MaxPooling3D Maxout PReLU SoftMax StaticDynamicAxis StaticDynamicShape "
        "VariableHolder disable_layer_logging get_registered_layer l1_regularizer l2_regularizer "
        "layer_register regularize_cost regularize_cost_from_collection "
        "rename_tflayer_get_variable"
    ),
    "predict": (
        "AsyncPredictorBase DataParallelOfflinePredictor DatasetPredictorBase FeedfreePredictor "
        "ModelExport ModelExporter MultiProcessDatasetPredictor MultiProcessPredictWorker "
        "MultiProcessQueuePredictWorker MultiThreadAsyncPredictor MultiTowerOfflinePredictor "
        "OfflinePredictor OnlinePredictor PredictConfig PredictorBase PredictorFactory "
        "SimpleDatasetPredictor get_predict_func"
    ),
    "report": "write_report",
    "runs": "read_epochs read_record",
    "tfutils": (
        "AccumGradOptimizer BaseTowerContext ChainInit CheckGradient CheckpointCorrupt "
        "ComputeOptions DictRestore FilterNoneGrad GlobalNormClip GradientProcessor InitFrom "
        "JustCurrentSession LossScaleOptimizer MOVING_SUMMARY_OPS_KEY MapGradient "
        "NewSessionCreator ParamRestore PostProcessOptimizer PrintGradient ProxyOptimizer "
        "ReuseSessionCreator SaverRestore SaverRestoreRelaxed ScaleGradient SessionCreatorAdapter "
        "SessionInit SessionUpdate SmartInit SummaryGradient TowerContext TowerFunc "
        "TowerFuncWrapper TowerTensorHandle TowerTensorHandles TryResumeTraining "
        "VariableAssignmentOptimizer VariableMismatch VariablePairs add_activation_summary "
        "add_moving_summary add_param_summary add_tensor_summary apply_grad_processors argscope "
        "auto_reuse_variable_scope backup_collection build_twin cached_name_scope "
        "collect_env_info create_histogram_summary create_scalar_summary custom_getter_scope "
        "dependency_of_fetches dependency_of_targets describe_model describe_trainable_vars "
        "dump_chkpt_vars dump_session_params enable_argscope_for_function "
        "enable_argscope_for_module freeze_collection freeze_get_variable freeze_variables "
        "get_all_checkpoints get_arg_scope get_checkpoint_path get_current_tower_context "
        "get_default_sess_config get_global_step_value get_global_step_var get_model_loader "
        "get_name_scope_name get_op_or_tensor_by_name get_op_tensor_name "
        "get_savename_from_varname get_shape_str get_tensors_by_names get_tf_version_number "
        "get_tf_version_tuple is_training_name load_checkpoint_vars load_chkpt_vars "
        "record_variables remap_get_variable remap_variables replace_get_variable "
        "restore_collection save_checkpoint_vars save_chkpt_vars under_name_scope"
    ),
    "train": (
        "AsyncMultiGPUTrainer AutoResumeTrainConfig BytePSTrainer CollectiveTrainer "
        "DEFAULT_CALLBACKS DEFAULT_MONITORS DataEnded DistributedReplicatedTrainer "
        "DistributedTrainerParameterServer DistributedTrainerReplicated FeedfreeTrainerBase "
        "HorovodTrainer MultiGPUTrainerBase NoOpTrainer QueueClosed QueueInputTrainer "
        "SimpleFeedfreeTrainer SimpleTrainer SingleCostFeedfreeTrainer SingleCostTrainer "
        "StopTraining SyncMultiGPUTrainer SyncMultiGPUTrainerParameterServer "
        "SyncMultiGPUTrainerReplicated TowerTrainer TrainConfig Trainer TrainingInterrupted "
        "apply_default_prefetch launch_train_with_config prepare_log_dir"
    ),
    "utils": (
        "Accuracy BinaryStatistics DIE IterSpeedCounter LoopThread OnlineMoments OrderedContainer "
        "RatioCounter ShareSessionThread StatCounter StoppableThread Timer change_env change_gpu "
        "download ensure_proc_terminate execute_only_once fix_rng_seed get_dataset_path "
        "get_nr_gpu get_num_gpu get_rng get_tqdm get_tqdm_kwargs graph_memoized "
        "humanize_time_delta log_once logger map_arg mask_sigint memoized memoized_ignoreargs "
        "memoized_method mkdir_p normpath print_total_timer recursive_walk shape2d shape4d "
        "start_proc_mask_signal subproc_call timed_operation total_timer"
    ),
    # end names
}
HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
