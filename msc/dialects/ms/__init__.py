"""The tensor dialect: one operation per MindSpore primitive that survives, with value semantics on builtin tensors."""

# What is imported is the list of operations.
# ruff: noqa: F401
# isort: off
# fmt: off
# pyright: reportUnusedImport=false

from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation

from msc.dialects.ms.activations import (
    CeluOp, ClipOp, EluOp, GeluOp, HardSigmoidOp, HardSwishOp, LeakyReluOp, LogSoftmaxOp, MishOp, PreluOp, Relu6Op,
    SeluOp, SiluOp, SoftmaxOp, SoftsignOp,
)
from msc.dialects.ms.arithmetic import (
    AddOp, Atan2Op, DivOp, FloorDivOp, MaximumOp, MinimumOp, ModOp, MulNoNanOp, MulOp, PowOp, RemOp, SubOp,
)
from msc.dialects.ms.axis_transforms import TransformAxisOp, WindowsOp
from msc.dialects.ms.barrier import BarrierOp
from msc.dialects.ms.collectives import (
    AllGatherOp, AllReduceOp, AllSliceOp, AllToAllOp, BroadcastOp, ReduceScatterOp, SendRecvOp,
)
from msc.dialects.ms.comparison import (
    BitwiseAndOp, BitwiseOrOp, BitwiseXorOp, EqualOp, GreaterEqualOp, GreaterOp, LessEqualOp, LessOp, LogicalAndOp,
    LogicalOrOp, LogicalXorOp, NotEqualOp, ShiftLeftOp, ShiftRightOp,
)
from msc.dialects.ms.convolution import Conv1dOp, Conv2dOp, Conv3dOp
from msc.dialects.ms.elementwise import BitCastOp, CastOp, IdentityOp, SelectOp, StopGradientOp
from msc.dialects.ms.generic import ComputeOp
from msc.dialects.ms.images import DepthToSpaceOp, ResizeNearestOp, SpaceToDepthOp
from msc.dialects.ms.indexing import GatherElementsOp, GatherOp, IotaOp, OneHotOp, ScatterAddOp, TrilOp, TriuOp
from msc.dialects.ms.linear import BatchMatmulOp, DenseOp, MatmulOp
from msc.dialects.ms.logarithmic import BinaryCrossEntropyOp, LogAddExpOp, LogitOp, XlogyOp
from msc.dialects.ms.movement import BroadcastToOp, ConcatOp, ReverseOp, SliceOp, SplitOp, StackOp, TileOp, TransposeOp
from msc.dialects.ms.normalisation import (
    BatchNormOp, GroupNormOp, InstanceNormOp, L2NormalizeOp, LayerNormOp, RmsNormOp,
)
from msc.dialects.ms.ordering import ArgsortOp
from msc.dialects.ms.padding import DilateOp, PadOp
from msc.dialects.ms.pooling import (
    AvgPool1dOp, AvgPool2dOp, AvgPool3dOp, GlobalAvgPoolOp, GlobalMaxPoolOp, MaxPool1dOp, MaxPool2dOp, MaxPool3dOp,
    SumPool1dOp, SumPool2dOp, SumPool3dOp,
)
from msc.dialects.ms.quantisation import DequantizeOp, PackedDotOp, PackedMatmulOp, QuantizeOp, RequantizeOp, RescaleOp
from msc.dialects.ms.reductions import (
    ArgmaxOp, ArgminOp, CumsumOp, ReduceAllOp, ReduceAnyOp, ReduceMaxOp, ReduceMeanOp, ReduceMinOp, ReduceProdOp,
    ReduceSumOp,
)
from msc.dialects.ms.slices import ExtractSliceOp, InsertSliceOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp, ParameterOp, YieldOp
from msc.dialects.ms.subpixel_convolution import SubpixelConvOp
from msc.dialects.ms.target import TargetAttr
from msc.dialects.ms.transposed_convolution import Conv1dTransposeOp, Conv2dTransposeOp, Conv3dTransposeOp
from msc.dialects.ms.unary import (
    OF_SCALARS, BitwiseNotOp, LogicalNotOp, ReciprocalOp, ReluOp, SqrtOp, SquareOp, UnaryOp,
)
from msc.dialects.ms.views import ExpandDimsOp, FlattenOp, ReshapeOp, SqueezeOp

OPERATIONS = tuple(
    sorted(
        (
            found
            for found in (*tuple(vars().values()), *OF_SCALARS.values())
            if isinstance(found, type) and issubclass(found, IRDLOperation) and found not in (IRDLOperation, UnaryOp)
        ),
        key=lambda found: (found.__module__, found.__name__),
    )
)
"""Every operation, by family."""

MS = Dialect("ms", list(OPERATIONS), [TargetAttr])


def __getattr__(name: str) -> type[UnaryOp]:
    """The operations of scalar operators: `ms.ExpOp`."""
    if name not in OF_SCALARS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return OF_SCALARS[name]
