"""The pages of the reference: which guides explain each, and which names it has.

The first line of an entry has pages of `docs`. A name is one of `tensorpack`; others stand after
the address that they have in it, up to the end of the line: `dataflow.imgaug: Flip Shift`. A public
name that no page lists ends `make docs`, and so does one that is listed twice.
"""

__all__ = ["SECTIONS", "TASKS", "guides_of", "names_of"]

TASKS = {
    "Sources": """dataflow tutorials/02-dataflow
        DataFromList DataFromIterable DataFromGenerator DataFromQueue FakeData CacheData
        SharedList""",
    "Own dataflows": """tutorials/02-dataflow dataflow
        DataFlow RNGDataFlow ProxyDataFlow DataFlowTerminated StateNotKept UnknownLength""",
    "Batches": """dataflow howto/data
        BatchData BatchDataByShape FixedSizeData RepeatedData RepeatedDataPoint LocallyShuffleData
        PrintData TestDataSpeed""",
    "Join and select": """dataflow howto/data
        JoinData ConcatData RandomChooseData RandomMixData SelectComponent FilterData""",
    "Map and processes": """dataflow profiling
        MapData MapDataComponent RandomMapData MultiThreadMapData MultiProcessMapData
        MultiProcessMapAndBatchData WorkerDied WorkerFailed""",
    "Runners and machines": """dataflow profiling
        MultiProcessRunner MultiProcessRunnerZMQ MultiThreadRunner PrefetchOnGPUs RemoteDataZMQ
        make_remote_key send_dataflow_zmq
        dataflow.dftools: dump_dataflow_to_process_queue""",
    "Files": """dataflow howto/data
        LMDBSerializer LMDBData LMDBDataDecoder LMDBDataPoint CaffeLMDB
        TFRecordSerializer TFRecordData TFRecordBytes HDF5Serializer HDF5Data NumpySerializer
        SVMLightData DamagedFile RecordFile RecordsFlow write_records""",
    "Images": """augmentors datasets dataflow
        ImageFolder ImageFromFile ImageFromList DecodeImageComponent
        AugmentImageComponent AugmentImageComponents AugmentImageCoordinates""",
    "Drawing": """augmentors
        dataflow.dftools: dump_dataflow_images
        utils.viz: stack_patches gen_stack_patches draw_boxes intensity_to_rgb pyplot2img
        utils.viz: interactive_imshow dump_dataflow_images
        utils.rect: Rect""",
    "Datasets": """datasets
        dataflow.dataset: Mnist FashionMnist Cifar10 Cifar100 CifarBase SVHNDigit ILSVRC12
        dataflow.dataset: ILSVRC12Files ILSVRCMeta TinyImageNet Places365Standard BSDS500
        dataflow.dataset: Caltech101Silhouettes VisualQA""",
    "Crop and resize": """augmentors
        dataflow.imgaug: Resize ResizeShortestEdge RandomResize CenterCrop RandomCrop
        dataflow.imgaug: RandomCropRandomShape RandomCropAroundBox RandomCutout
        dataflow.imgaug: GoogleNetRandomCropAndResize CenterPaste RandomPaste BackgroundFiller
        dataflow.imgaug: ConstantBackgroundFiller perturb_BB""",
    "Flip and rotate": """augmentors
        dataflow.imgaug: Flip Transpose Rotation RotationAndCropValid Shift Affine GaussianDeform
        dataflow.imgaug: RandomApplyAug RandomChooseAug RandomOrderAug AugmentorList Identity
        dataflow.imgaug: MapImage""",
    "Colour and noise": """augmentors
        dataflow.imgaug: Brightness BrightnessScale Contrast Gamma Hue Saturation Lighting Grayscale
        dataflow.imgaug: ColorSpace Clip MeanVarianceNormalize MinMaxNormalize GaussianBlur
        dataflow.imgaug: GaussianNoise SaltPepperNoise JpegNoise ToFloat32 ToUint8""",
    "Own augmentors": """augmentors
        dataflow.imgaug: ImageAugmentor PhotometricAugmentor Transform TransformList
        dataflow.imgaug: TransformFactory NoOpTransform PhotometricTransform CropTransform
        dataflow.imgaug: FlipTransform PasteTransform RemapTransform ResizeTransform ShiftTransform
        dataflow.imgaug: TransposeTransform WarpAffineTransform AugmentationError
        dataflow.imgaug: Albumentations IAAugmentor""",
    "Model descriptions": """trainers tutorials/01-classifier
        ModelDesc ModelDescBase TowerContext BaseTowerContext get_current_tower_context TowerFunc
        TowerTensorHandle TowerTensorHandles build_twin
        tfutils.tower: TrainTowerContext PredictTowerContext in_main_training_tower
        compat: TensorSpec tfv1""",
    "Layers": """models
        Conv2D Conv2DTranspose Conv3D DepthwiseConv2D FullyConnected MaxPooling AvgPooling
        GlobalAvgPooling MaxPooling3D AvgPooling3D Dropout ConcatWith ImageSample BilinearUpSample
        FixedUnPooling""",
    "Normalization": """models
        BatchNorm BatchRenorm LayerNorm InstanceNorm GroupNorm BNReLU LeakyReLU PReLU Maxout SoftMax
        l1_regularizer l2_regularizer regularize_cost regularize_cost_from_collection""",
    "Layer options": """models
        argscope get_arg_scope enable_argscope_for_function enable_argscope_for_module LinearWrap
        VariableHolder layer_register get_registered_layer disable_layer_logging StaticDynamicAxis
        StaticDynamicShape rename_tflayer_get_variable""",
    "Losses": """models trainers
        tfutils.symbolic_functions: accuracy prediction_incorrect huber_loss psnr rms
        tfutils.symbolic_functions: class_balanced_cross_entropy
        tfutils.symbolic_functions: class_balanced_sigmoid_cross_entropy contrastive_loss
        tfutils.symbolic_functions: siamese_cosine_loss triplet_loss soft_triplet_loss batch_flatten
        tfutils.symbolic_functions: flatten get_scalar_var guided_relu saliency_map print_stat
        tfutils.symbolic_functions: shapeless_placeholder
        tfutils.symbolic_functions: Distribution CategoricalDistribution GaussianDistribution
        tfutils.symbolic_functions: ProductDistribution
        tfutils.model_utils: apply_slim_collections""",
    "Gradients": """trainers tutorials/05-losses
        apply_grad_processors GradientProcessor GlobalNormClip MapGradient ScaleGradient
        SummaryGradient PrintGradient CheckGradient FilterNoneGrad ProxyOptimizer AccumGradOptimizer
        LossScaleOptimizer PostProcessOptimizer VariableAssignmentOptimizer
        tfutils.gradproc: map_values values_of
        tfutils.optimizer: apply_to_replicas""",
    "Variables and scopes": """models weights
        record_variables VariablePairs freeze_variables remap_variables custom_getter_scope
        auto_reuse_variable_scope cached_name_scope under_name_scope get_name_scope_name
        backup_collection freeze_collection restore_collection get_global_step_var
        get_global_step_value get_op_or_tensor_by_name get_op_tensor_name get_tensors_by_names
        get_shape_str dependency_of_fetches dependency_of_targets""",
    "Training": """quickstart resuming errors
        TrainConfig launch_train_with_config prepare_log_dir DEFAULT_CALLBACKS DEFAULT_MONITORS
        StopTraining TrainingInterrupted DataEnded QueueClosed""",
    "Trainers": """trainers
        SimpleTrainer Trainer TowerTrainer SingleCostTrainer NoOpTrainer NewSessionCreator
        ReuseSessionCreator SessionCreatorAdapter get_default_sess_config ComputeOptions
        apply_default_prefetch""",
    "Several GPUs": """tutorials/06-several-gpus distributed
        SyncMultiGPUTrainerReplicated SyncMultiGPUTrainerParameterServer AsyncMultiGPUTrainer
        SyncMultiGPUTrainer CollectiveTrainer DistributedTrainerReplicated
        DistributedTrainerParameterServer HorovodTrainer BytePSTrainer DataParallelBuilder
        LeastLoadedDeviceSetter allreduce_grads""",
    "Inputs": """trainers dataflow
        QueueInput FeedInput TFDatasetInput TensorInput PlaceholderInput StagingInput ZMQInput
        DummyConstantInput DataParallelFeedInput InputSource FeedfreeInput EnqueueThread
        remap_input_source DatapointChecker DataFlowEmpty""",
    "Saving": """resuming runs tutorials/04-saving
        ModelSaver MinSaver MaxSaver get_checkpoint_path get_all_checkpoints load_checkpoint_vars
        save_checkpoint_vars dump_session_params CheckpointCorrupt get_savename_from_varname
        is_training_name
        tfutils.varmanip: weights_of""",
    "Validation": """validation
        InferenceRunner DataParallelInferenceRunner InferenceRunnerBase ScalarStats
        ClassificationError BinaryClassificationStats Inferencer EarlyStop""",
    "Schedules": """howto/learning-rate
        ScheduledHyperParamSetter HyperParamSetterWithFunc StatMonitorParamSetter
        HumanHyperParamSetter HyperParamSetter HyperParam
        GraphVarParam ObjAttrParam""",
    "Monitors": """callbacks runs
        ScalarPrinter JSONWriter TFEventWriter CometMLMonitor
        SendMonitorData SendStat MonitorBase Monitors ScalarRecord RunReport write_report
        read_epochs read_record""",
    "Summaries": """callbacks validation
        add_moving_summary create_scalar_summary create_histogram_summary add_activation_summary
        add_param_summary add_tensor_summary MovingAverageSummary MergeAllSummaries
        SimpleMovingAverage MOVING_SUMMARY_OPS_KEY
        tfutils.summary: add_tagged_moving_summary average_states half_square op_name_of_tag
        tfutils.summary: root_mean_square tag_of_tensor""",
    "Progress and speed": """profiling callbacks
        ProgressBar EstimatedTimeLeft TimeReport ThroughputTracker MaintainStepCounter
        GPUUtilizationTracker GPUMemoryTracker HostMemoryTracker GraphProfiler
        describe_trainable_vars collect_env_info""",
    "Debugging": """howto/debugging errors
        TensorPrinter DumpTensors DumpTensorAsImage ProcessTensors CheckNumerics StopIfNonFinite
        NonFiniteError Watchdog StalledTraining SessionRunTimeout InjectShell
        TFLocalCLIDebugHook""",
    "Own callbacks": """tutorials/03-callbacks callbacks design/run
        Callback PeriodicTrigger PeriodicCallback PeriodicRunHooks EnableCallbackIf RunOp
        RunUpdateOps CallbackFactory StartProcOrThread ProxyCallback Callbacks CallbackToHook
        HookToCallback""",
    "Weights and export": """weights
        SmartInit SaverRestore DictRestore ChainInit InitFrom SessionInit SessionUpdate
        TryResumeTraining VariableMismatch
        tfutils.sessinit: CheckpointReaderAdapter ExactRestore
        tfutils.varmanip: fit_value known_of_graph load_named_values mismatch_table
        ModelExporter""",
    "Prediction": """predicting howto/serving
        OfflinePredictor PredictConfig OnlinePredictor PredictorBase PredictorFactory
        MultiTowerOfflinePredictor DataParallelOfflinePredictor SimpleDatasetPredictor
        MultiProcessDatasetPredictor DatasetPredictorBase MultiThreadAsyncPredictor
        AsyncPredictorBase MultiProcessQueuePredictWorker FeedfreePredictor""",
    "Environments": """learning tutorials/07-dqn howto/reinforcement-learning
        RL: Player PlayerStep AtariPlayers GymPlayers FrameHistory LimitLength PreventStuck find_rom
        RL: LimitIdle
        RL: check_rom""",
    "Replay memory": """learning tutorials/07-dqn
        RL: ReplayMemory PrioritizedReplay Batch WeightedBatch NStepBatch epsilon_greedy""",
    "Acting and scores": """howto/reinforcement-learning learning
        RL: Simulator Agent RandomActions SimulatorThread Pacer Episode EpisodeCounter EpisodeLog
        RL: RunScores read_scores GameVideo VideoFile open_screen
        RL: restore_games""",
    "Logger and files": """runs
        logger log_once get_tqdm get_tqdm_kwargs download get_dataset_path mkdir_p normpath
        recursive_walk
        utils.serialize: dumps loads load_frame dump_hashed load_hashed FrameError MAX_BYTES""",
    "Threads and processes": """design/threads
        StoppableThread LoopThread ShareSessionThread start_proc_mask_signal mask_sigint
        ensure_proc_terminate subproc_call change_env change_gpu get_num_gpu
        utils.concurrency: ProcessGroup OrderedResultGatherProc guard_thread enable_death_signal
        utils.concurrency: set_parent_death_signal""",
    "Statistics and timers": """callbacks
        StatCounter RatioCounter OnlineMoments Accuracy BinaryStatistics Timer timed_operation
        IterSpeedCounter total_timer print_total_timer humanize_time_delta""",
    "Random and cached": """resuming
        get_rng fix_rng_seed memoized memoized_ignoreargs memoized_method graph_memoized
        execute_only_once map_arg shape2d shape4d
        utils.argtools: axis_order call_only_once get_data_format
        utils.of_2017.discretize: UniformDiscretizer1D UniformDiscretizerND
        utils.of_2017.lut: LookUpTable""",
    "TensorFlow versions": """migration
        get_tf_version_tuple
        compat: tf_version is_tfv2 backport_tensor_spec end_eager_execution forward_op
        compat: gpu_memory_peak in_branch is_closed is_name_of_tf1 load_keras
        compat: local_cli_debug_hook make_raw_callable replace_input run_after
        compat: step_trace""",
    "Old data names": """migration
        PrefetchData PrefetchDataZMQ MultiProcessPrefetchData MultiThreadPrefetchData
        MultiProcessMapDataZMQ MultiProcessMapAndBatchDataZMQ ThreadedMapData
        dataflow.imgaug: Augmentor
        dataflow.dftools: dump_dataflow_to_lmdb dump_dataflow_to_tfrecord
        utils.rect: BoxBase FloatBox IntBox""",
    "Old training names": """migration
        Triggerable TrainingMonitor TFSummaryWriter StepTensorPrinter DumpTensor DumpParamAsImage
        PeakMemoryTracker FeedfreeInferenceRunner InputDesc InputVar BatchQueueInput
        StagingInputWrapper Deconv2D get_predict_func MultiProcessPredictWorker ModelExport
        ParamRestore JustCurrentSession SaverRestoreRelaxed TowerFuncWrapper describe_model
        load_chkpt_vars dump_chkpt_vars save_chkpt_vars freeze_get_variable remap_get_variable
        replace_get_variable get_model_loader AutoResumeTrainConfig QueueInputTrainer
        SimpleFeedfreeTrainer FeedfreeTrainerBase SingleCostFeedfreeTrainer MultiGPUTrainerBase
        DistributedReplicatedTrainer""",
    "Old players": """migration howto/reinforcement-learning
        RL: RLEnvironment GymEnv ProxyPlayer AutoRestartPlayer HistoryFramePlayer
        RL: LimitLengthPlayer PreventStuckPlayer MapPlayerState DiscreteActionSpace""",
    "Old tools": """migration
        get_tf_version_number get_nr_gpu DIE OrderedContainer
        utils.of_2017.globvars: GlobalNS globalns use_global_argument
        utils.of_2017.debug: enable_call_trace
        utils.argtools: accepts_old_keywords
        utils.of_2017.develop: HIDE_DOC LazyLoader NonPicklableWrapper building_rtfd
        utils.of_2017.develop: create_dummy_class create_dummy_func deprecated log_deprecated""",
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


def guides_of(title):
    """The pages of `docs` that explain a task."""
    return TASKS[title].partition("\n")[0].split()


def names_of(title):
    """Pairs of an address below `tensorpack`, or "", and a name there, in their order."""
    for line in TASKS[title].splitlines()[1:]:
        address, _, names = line.strip().rpartition(": ")
        for name in names.split():
            yield address, name
