"""Names of MindSpore's whose work msc does not do: programs import them, and their use is refused in words (MSC0898).

One table: an advice, and the names that it is for. A name has the same advice under every path.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

from msc.frontend.errors import ApiValueError

_OVERFLOW = "ops.FloatStatus, nn.TrainOneStepWithLossScaleCell and amp.all_finite see an overflow in the gradients"
_KERNELS = "ops.Custom runs a Python function on arrays, or a C function of a shared library (func_type='aot')"
_MINDIR = "msc.load reads what msc.export writes: .mir, ONNX, C; load_checkpoint reads MindSpore's checkpoints"
_DEVICES = "there is one device and one process; docs/limits.md says what is distributed"
_ASCEND = "it is a kernel of Ascend's; compose it of ops, which msc compiles for the CPU and for a simulated Ascend"
_SECOND = "second-order training is not there; nn.Lamb and nn.AdamWeightDecay train large networks"
_COMPLEX = "msc computes on real numbers; keep the real and the imaginary part as two tensors"
_SPARSE = "the sparse form is COOTensor, CSRTensor or RowTensor; to_dense() gives a tensor that all functions take"
_OTHERS = "nn.Adam, Momentum, Lamb, LSTM, Conv2d and the metrics of nn do related work; a subclass may do this one"
_SERVER = "embeddings lie in this process; nn.Embedding and nn.EmbeddingLookup look them up"
_REWRITE = "networks are changed in Python: cells are attributes, which may be replaced"
_SCHEDULE = "msc compile plans this itself; docs/schedules-by-hand.md says how to do it by hand"
_SPECIAL = "scipy.special has it for arrays; ops.Custom calls such a function"
_OLD_LOSS = "ops.SoftmaxCrossEntropyWithLogits and ops.SigmoidCrossEntropyWithLogits take its place"
_OLD_POOLING = "ops.MaxPool and ops.AvgPool take its place"
_INTERNAL = (
    "it is internal to MindSpore's graph compiler; Python's operators, lists, dicts and slices do this in graphs"
)
_IN_PLACE = "x = ops.relu(x), or another function without the line behind its name, gives a tensor of its own"
_SEEDS = "msc.set_seed sets all random numbers, and get_rng_state and set_rng_state keep and bring back their state"
_POOLS = "nn.MaxPool3d, AvgPool3d, AdaptiveMaxPool3d, Conv3dTranspose and mint.nn.functional do such work"
_SAMPLERS = "ops.randperm, randint, multinomial and uniform draw numbers, of which such samples are made"
_STATES = "nn has Adam, Adagrad, FTRL, RMSProp, AdaMax, SGD and others, which call no operator for an update"
_PARAMETERS = "p.set_data(ops.tensor_scatter_mul(p, indices, updates)), and its kin for div, max, min, sub"
_FUNCTIONS = "the function of ops in small letters, or those of ops.interpolate, sort, topk, stack, where, do this"
_HOOKS = "nn.Cell.recompute() keeps activations from being stored; register_forward_hook sees inputs and outputs"
_BOOST = "training is not altered to be faster; nn.TrainOneStepCell subclasses may accumulate or skip gradients"
_ADDRESS = "memory is the tensor's own: asnumpy() gives it as an array, set_data or assign_value give other elements"
_OLD_ORDER = "ops.Depend(value, expression) takes its place; statements keep their order here without it"

_TABLE: Mapping[str, str] = {
    _OVERFLOW: "NPUAllocFloatStatus NPUClearFloatStatus NPUGetFloatStatus NPUClearFloatStatusV2 NPUGetFloatStatusV2",
    _KERNELS: (
        "AiCPURegOp AkgAscendRegOp AkgGpuRegOp CpuRegOp CustomOpBuilder CustomRegOp DataType TBERegOp "
        "custom_info_register kernel op_info_register ms_kernel PyFunc PyExecute cpp_create_prim_instance_helper"
    ),
    _MINDIR: (
        "GraphCell load_mindir save_mindir export_split_mindir obfuscate_ckpt load_obf_params_into_net "
        "mindio_preload set_mindio_server_info"
    ),
    _DEVICES: (
        "AdaSumByDeltaWeightWrapCell AdaSumByGradWrapCell P2POp BatchISendIRecv CollectiveGather "
        "CollectiveScatter Receive Send Reduce NeighborExchange NeighborExchangeV2 AlltoAllV AlltoAllVC "
        "AllGatherV ReduceScatterV Reshard Morph TCPStore isend irecv send recv send_object_list recv_object_list "
        "batch_isend_irecv gather_into_tensor gather_object scatter_object_list scatter_tensor "
        "set_op_strategy_config convert_checkpoint_by_rank convert_checkpoints load_segmented_checkpoints "
        "merge_pipeline_strategys rank_list_for_convert rank_list_for_transform restore_group_info_list "
        "transform_checkpoint_by_rank transform_checkpoints unified_safetensors OptTFTWrapper TrainFaultTolerance "
        "get_ckpt_path_with_strategy load_checkpoint_async set_stream_limit get_stream_limit reset_stream_limit "
        "set_device_limit get_device_limit StreamLimitCtx reset_stream_limit all_gather all_gather_into_tensor "
        "all_gather_into_tensor_uneven all_gather_object all_reduce all_to_all all_to_all_single broadcast "
        "broadcast_object_list destroy_process_group get_backend get_global_rank get_group_rank get_world_size "
        "init_process_group is_available is_initialized new_group reduce reduce_scatter reduce_scatter_tensor "
        "reduce_scatter_tensor_uneven reshard set_comm_ops_inplace all_gather_matmul matmul_reduce_scatter "
        "all_to_all_v_c"
    ),
    _ASCEND: (
        "ApplyRotaryPosEmb FusedCastAdamWeightDecay FusedWeightScaleApplyMomentum GroupTopk PagedAttention "
        "PagedAttentionMask ReshapeAndCache flash_attention_score fused_infer_attention_score incre_flash_attention "
        "lightning_indexer moe_distribute_combine moe_distribute_dispatch moe_init_routing_v2 moe_token_permute "
        "moe_token_unpermute multi_scale_deformable_attn_function nsa_compress nsa_compress_attention "
        "nsa_select_attention prompt_flash_attention ring_attention_update sparse_flash_attention "
        "speed_fusion_attention add_layer_norm add_rms_norm FusedAdaFactor FusedAdaFactorWithGlobalNorm npu_gelu "
        "SubAndFilter NonDeterministicInts SampleDistortedBoundingBoxV2"
    ),
    _SECOND: ("thor Thor ConvertModelUtils ConvertNetUtils Conv2dThor DenseThor EmbeddingThor EmbeddingLookupThor "),
    _COMPLEX: (
        "Angle Complex ComplexAbs Conj ConjugateTranspose FFTWithSize Polar angle polar view_as_real "
        "fft fft2 fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft "
        "irfft2 irfftn rfft rfft2 rfftn stft STFT Eig eig eigvals cdouble cfloat conj"
    ),
    _SPARSE: (
        "FusedSparseAdam FusedSparseFtrl FusedSparseLazyAdam FusedSparseProximalAdagrad SparseApplyAdadelta "
        "SparseApplyAdagrad SparseApplyAdagradV2 SparseApplyFtrl SparseApplyFtrlV2 SparseApplyProximalAdagrad "
        "SparseApplyRMSProp SparseSlice SparseTensor Coalesce SparseGatherV2 SparseTensorDenseAdd SparseToDense "
        "coalesce "
        "coo2csr coo_abs coo_acos coo_acosh coo_add coo_asin coo_asinh coo_atan coo_atanh coo_ceil coo_concat "
        "coo_cos coo_cosh coo_exp coo_expm1 coo_floor coo_inv coo_isfinite coo_isinf coo_isnan coo_log coo_log1p "
        "coo_neg coo_relu coo_relu6 coo_round coo_sigmoid coo_sin coo_sinh coo_softsign coo_sqrt coo_square coo_tan "
        "coo_tanh coo_tensor_get_dense_shape coo_tensor_get_indices coo_tensor_get_values csr2coo csr_abs csr_acos "
        "csr_acosh csr_add csr_asin csr_asinh csr_atan csr_atanh csr_ceil csr_cos csr_cosh csr_div csr_exp "
        "csr_expm1 csr_floor csr_gather csr_inv csr_isfinite csr_isinf csr_isnan csr_log csr_log1p csr_mm csr_mul "
        "csr_mv csr_neg csr_reduce_sum csr_relu csr_relu6 csr_round csr_sigmoid csr_sin csr_sinh csr_softmax "
        "csr_softsign csr_sqrt csr_square csr_tan csr_tanh csr_tensor_get_dense_shape csr_tensor_get_indices "
        "csr_tensor_get_indptr csr_tensor_get_values make_coo_tensor make_csr_tensor make_row_tensor "
        "make_row_tensor_inner make_sparse_tensor row_tensor_add row_tensor_get_dense_shape row_tensor_get_indices "
        "row_tensor_get_values sparse_segment_mean"
    ),
    _OTHERS: (
        "AdamOffload AdamNoUpdateParam LARSUpdate LSTM SparseTensorDenseMatmul "
        "ConfusionMatrixMetric BleuScore Dice HausdorffDistance MeanSurfaceDistance OcclusionSensitivity "
        "RootMeanSquareDistance OnRequestExit BackupAndRestore SummaryLandscape FlopsUtilizationCollector "
        "deformable_conv2d DeformableOffsets"
    ),
    _SERVER: "Pull Push MapCacheIdx MapUniform MultiFieldEmbeddingLookup GetNext GetNextSingleOp",
    _REWRITE: "Node NodeType ScopedValue SymbolTree ValueType",
    _SCHEDULE: "set_dump MemPool PluggableAllocator UntypedStorage use_mem_pool memory_replay",
    _OLD_LOSS: "SoftmaxCrossEntropy SigmoidCrossEntropy",
    _OLD_POOLING: "Pooling",
    _OLD_ORDER: "ControlDepend",
    _INTERNAL: (
        "CustomPassType DtypeToEnum GeSwitch J Merge MsDispatchMode P Reusing SliceGetItem TensorToTuple Type "
        "UpdateState _AllSwap _ExperimentalConfig _Grad _NullType _Vmap _add_attr _ms_pyfunc _null "
        "_ones_like_for_grad _reuse_data_ptr _tft_handler arg_dtype_cast arg_handler array_ops array_reduce "
        "augassign_add augassign_div augassign_floordiv augassign_mod augassign_mul augassign_sub bool_and bool_eq "
        "bool_not bool_or broadcast_gradient_args clear_op_infer clear_op_wrapper dict_getitem dict_setitem "
        "distribute embed env_get environ_add environ_create environ_get environ_set gen_extend_func "
        "gen_ops_def gen_ops_prim geswitch get_vm_impl_fn hastype hyper_add in_dict is_ is_not "
        "is_dynamic_sequence_element_unknown is_sequence_shape_unknown is_sequence_value_unknown "
        "is_tensor_bool_cond isconstant iter_converter linalg_ops list_equal list_getitem list_len list_setitem "
        "make_dict make_list make_map_parameter make_slice merge ms_hasnext ms_next not_in_dict other_ops "
        "prim_arg_register pyboost_inner_prim reduced_shape ref_to_embed register_custom_backend "
        "register_custom_pass register_op_infer register_op_wrapper shape_ shape_mul signature string_concat "
        "string_eq switch switch_layer tail tuple_div tuple_equal tuple_reversed tuple_setitem zip_operation "
        "flops_collection enable_dynamic DeviceCtx derivative jet linearize ForiLoop WhileLoop Scan MoveTo move_to"
    ),
    _IN_PLACE: (
        "elu_ hardtanh_ relu_ threshold_ stop_gradient_ reshape_ addr_ inplace_sigmoid inplace_index_add "
        "InplaceIndexAdd InplaceUpdateV2 IndexPut swap_tensors"
    ),
    "Tensor(numpy.frombuffer(buffer, dtype)) does this": "frombuffer",
    _SEEDS: "Generator default_generator seed",
    _POOLS: (
        "AdaptiveAvgPool3D AdaptiveMaxPool2D AdaptiveMaxPool3D AvgPool1dExt AvgPool2dExt AvgPool3dExt Conv3DTranspose "
        "Dropout2dExt DropoutExt EmbeddingExt L1LossExt LayerNormExt LogSoftmaxExt MaxPool2dExt PReLUExt "
        "FractionalAvgPool FractionalMaxPool FractionalMaxPool2d FractionalMaxPool3DWithFixedKsize "
        "FractionalMaxPool3d FractionalMaxPoolWithFixedKsize MaxPool3DWithArgmax MaxUnpool1d MaxUnpool2D MaxUnpool2d "
        "MaxUnpool3D MaxUnpool3d adaptive_avg_pool2d_ext adaptive_max_pool3d avg_pool3d batch_norm_elemt "
        "batch_norm_gather_stats_with_counts batch_norm_stats conv3d_transpose conv_tbc conv_transpose2d "
        "fractional_max_pool2d fractional_max_pool3d max_pool3d max_unpool1d max_unpool2d max_unpool3d "
        "DepthwiseConv2dNative Dilation2D BasicLSTMCell UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad3d"
    ),
    _SAMPLERS: (
        "ComputeAccidentalHits LogNormalReverse LogUniformCandidateSampler MultinomialWithReplacement "
        "ParameterizedTruncatedNormal RandpermV2 SampledSoftmaxLoss UniformCandidateSampler "
        "log_uniform_candidate_sampler poisson uniform_candidate_sampler Dirac Sparse"
    ),
    _STATES: (
        "ApplyAdagradDA ApplyAdamWithAmsgrad ApplyAdamWithAmsgradV2 ApplyAddSign ApplyCenteredRMSProp ApplyFtrl "
        "ApplyKerasMomentum ApplyPowerSign CyclicLR SequentialLR"
    ),
    _PARAMETERS: (
        "ScatterAddWithAxis ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdDiv ScatterNdMax ScatterNdMin "
        "ScatterNdMul ScatterNdSub ScatterNonAliasingAdd scatter_div scatter_max scatter_min scatter_mul "
        "scatter_nd_div scatter_nd_max scatter_nd_min scatter_nd_mul MapParameter"
    ),
    _FUNCTIONS: (
        "AdjustHue AdjustSaturation Assert BartlettWindow BatchToSpaceNDV2 BlackmanWindow CheckNumerics Col2Im "
        "CombinedNonMaxSuppression CompareAndBitpack ConfusionMatrix CopyWithSlice CumulativeLogsumexp "
        "DataFormatDimMap "
        "DataFormatVecPermute DumpGradient EditDistance ExtractGlimpse ExtractImagePatches ExtractVolumePatches "
        "GridSampler3D HSVToRGB HammingWindow Histogram HistogramFixedWidth LerpScalar ListDiff LowerBound MSSSIM "
        "MatrixDiagPartV3 MatrixDiagV3 MatrixLogarithm MatrixSetDiagV3 MatrixSolveLs MultiMarginLoss "
        "MultilabelMarginLoss NoRepeatNGram NonMaxSuppressionV3 NonMaxSuppressionWithOverlaps NthElement NuclearNorm "
        "ParallelConcat Pdist Quantile RGBToHSV RNNTLoss RaggedRange ResizeArea ResizeBicubic ResizeLinear1D "
        "ScaleAndTranslate SelectView TensorDump TransposeExtView TridiagonalMatMul TripletMarginLoss UniqueWithPad "
        "UpperBound UpsampleNearest3D UpsampleTrilinear3D baddbmm_ext diff_ext einsum_ext float_power_ext floormod "
        "isnan_ext mse_loss_ext rotated_iou tensordump unique_with_pad"
    ),
    _HOOKS: (
        "recompute_block register_saved_tensors_hooks saved_tensors_hooks no_init_parameters ms_memory_recycle "
        "set_kernel_launch_capture set_kernel_launch_group"
    ),
    _BOOST: (
        "AdaSum AutoBoost BoostTrainOneStepCell BoostTrainOneStepWithLossScaleCell DimReduce FreezeOpt "
        "GradientAccumulation GradientFreeze GroupLossScaleManager LessBN OptimizerProcess ParameterProcess "
        "freeze_cell ExitByRequest RSCPluginHandle TFTCommValue comm_exec_order_check dryrun get_sdc_detect_result "
        "runtime_execution_order_check sdc_detect_start sdc_detect_stop stress_detect EnvProfiler HostSystem"
    ),
    _SPECIAL: (
        "BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 bessel_j0 bessel_j1 bessel_k0 "
        "bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 Betainc"
    ),
}

_MEMBER_TABLE: Mapping[str, str] = {
    _INTERNAL: (
        "Tensor.assign_value_cpp Tensor.data_sync Tensor.delta_seed Tensor.getitem_index_info Tensor.hooks "
        "Tensor.index Tensor.init Tensor.init_finished Tensor.init_flag Tensor.is_init Tensor.param_info "
        "Tensor.set_cast_dtype Tensor.set_const_arg Tensor.set_device_address Tensor.set_init_flag "
        "Tensor.set_param_info Tensor.setitem_index_info Tensor.symbolic_shape Tensor.virtual_flag "
        "Tensor.wait_pipeline Cell.IGNORE_LIST Cell.T_destination Cell.bprop_debug Cell.cell_init_args "
        "Cell.compile_cache Cell.compile_phase Cell.compiled Cell.create_time Cell.enable_backward_hook "
        "Cell.exist_names Cell.exist_objs Cell.generate_scope Cell.get_func_graph_proto "
        "Cell.get_mixed_precision_type Cell.get_scope Cell.global_cells Cell.phase Cell.phase_cache "
        "Cell.set_mixed_precision_type Cell.total_instance_count Parameter.inited_param Parameter.key"
    ),
    _ADDRESS: (
        "Tensor.convert_bytes_to_tensor Tensor.delete_ Tensor.flush_from_cache Tensor.from_dlpack "
        "Tensor.index_of_parent_ Tensor.offload Tensor.offload_file_path Tensor.parent_tensor_ Tensor.set_ "
        "Tensor.storage Tensor.to_dlpack Tensor.untyped_storage Parameter.cache_enable Parameter.cache_shape"
    ),
    _COMPLEX: "Tensor.angle Tensor.eigvals",
    _HOOKS: ("Tensor.remove_hook Cell.offload Cell.register_parameter_forward_hook Cell.register_saved_tensors_hooks"),
    _BOOST: "Cell.set_boost",
    _DEVICES: (
        "Cell.parallel_parameter_merge_net_dict Cell.parallel_parameter_name_list Cell.pipeline_segment "
        "Cell.remove_redundant_parameters Cell.to_empty Parameter.add_pipeline_stage "
        "Parameter.comm_fusion Parameter.parallel_optimizer_comm_recompute Parameter.sliced "
        "Model.infer_predict_layout Model.infer_train_layout"
    ),
    "msc.jit takes such options; those of a Cell are given to set_jit_config": "Cell.jit_config_dict",
}

MEMBERS: Mapping[str, str] = {name: advice for advice, names in _MEMBER_TABLE.items() for name in names.split()}
"""A member of a class that MindSpore's class has and msc's has not -> what does its work here."""


def member_advice(kind: type, name: str) -> str | None:
    """What does the work of a member that MindSpore's class has and this one has not; None for no such member."""
    return next((MEMBERS[f"{k.__name__}.{name}"] for k in kind.__mro__ if f"{k.__name__}.{name}" in MEMBERS), None)


REFUSED: Mapping[str, str] = {name: advice for advice, names in _TABLE.items() for name in names.split()}
"""A name -> what does its work here."""


def _refuse(name: str) -> NoReturn:
    raise ApiValueError("MSC0898", f"msc does not do what MindSpore's {name} does", help=REFUSED[name])


class _Refusing(type):
    """Classes whose attributes and operators are refused, too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        _refuse(cls.__name__)


@cache
def refusal(name: str) -> Any:
    """What stands for a name: a class, which programs may derive from. Using it raises MSC0898.

    An operator is refused when it is called, as programs make those of all devices and call those of one.
    """
    is_operator = name[0].isupper()

    class Refused(metaclass=_Refusing):
        def __init__(self, *args: Any, **keywords: Any) -> None:
            if not is_operator or not _is_primitive(name):
                _refuse(name)

        def __call__(self, *args: Any, **keywords: Any) -> NoReturn:
            _refuse(name)

        def __getattr__(self, attribute: str) -> Any:
            if attribute.startswith("_"):
                raise AttributeError(attribute)
            _refuse(name)

    Refused.__name__ = Refused.__qualname__ = name
    Refused.__doc__ = f"MindSpore's {name}, which msc does not have: {REFUSED[name]}."
    return Refused


def _is_primitive(name: str) -> bool:
    """Whether the object is called later: most of the classes of `ops` are."""
    called = (_OVERFLOW, _ASCEND, _COMPLEX, _SPARSE, _SPECIAL, _DEVICES, _OLD_LOSS, _OLD_POOLING, _OLD_ORDER)
    return REFUSED[name] in called
