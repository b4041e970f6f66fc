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
_BOUND = "sizes are those of a call; msc.jit(dynamic=1) and Tensor(shape=(None, 4)) leave them open"
_SERVER = "embeddings lie in this process; nn.Embedding and nn.EmbeddingLookup look them up"
_REWRITE = "networks are changed in Python: cells are attributes, which may be replaced"
_SCHEDULE = "msc compile plans this itself; docs/schedules-by-hand.md says how to do it by hand"
_SPECIAL = "scipy.special has it for arrays; ops.Custom calls such a function"
_OLD_LOSS = "ops.SoftmaxCrossEntropyWithLogits and ops.SigmoidCrossEntropyWithLogits take its place"
_OLD_POOLING = "ops.MaxPool and ops.AvgPool take its place"
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
        "set_device_limit get_device_limit StreamLimitCtx all_gather_matmul matmul_reduce_scatter all_to_all_v_c"
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
        "irfft2 irfftn rfft rfft2 rfftn stft STFT Eig eig eigvals"
    ),
    _SPARSE: (
        "FusedSparseAdam FusedSparseFtrl FusedSparseLazyAdam FusedSparseProximalAdagrad SparseApplyAdadelta "
        "SparseApplyAdagrad SparseApplyAdagradV2 SparseApplyFtrl SparseApplyFtrlV2 SparseApplyProximalAdagrad "
        "SparseApplyRMSProp SparseSlice SparseTensor"
    ),
    _BOUND: "Symbol",
    _OTHERS: (
        "AdaFactor ASGD AdamOffload AdamNoUpdateParam LARS LARSUpdate LSTM LazyAdam Rprop SparseTensorDenseMatmul "
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
    _SPECIAL: (
        "BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 bessel_j0 bessel_j1 bessel_k0 "
        "bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 Betainc"
    ),
}

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
