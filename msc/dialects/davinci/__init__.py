"""The `davinci` dialect: programs of queue instructions for the cores of Ascend machines."""

from xdsl.ir import Dialect

from msc.dialects.davinci.buffers import AllocOp, BufferType
from msc.dialects.davinci.gathers import LoadIndexOp
from msc.dialects.davinci.index_ops import BlockIdxOp, MaxOp, MinOp, SectionOp, SubBlockOp
from msc.dialects.davinci.kernels import DavinciKernelOp
from msc.dialects.davinci.order_ops import CrossCoreSyncOp, FlagOp, PipeBarrierOp, SetFlagOp, WaitFlagDevOp, WaitFlagOp
from msc.dialects.davinci.queue_ops import QUEUE_OPS, QueueOp, queue_op

DAVINCI = Dialect(
    "davinci",
    [
        DavinciKernelOp,
        SectionOp,
        AllocOp,
        BlockIdxOp,
        SubBlockOp,
        LoadIndexOp,
        MinOp,
        MaxOp,
        SetFlagOp,
        WaitFlagOp,
        PipeBarrierOp,
        CrossCoreSyncOp,
        WaitFlagDevOp,
        *QUEUE_OPS.values(),
    ],
    [BufferType],
)

__all__ = [
    "DAVINCI",
    "QUEUE_OPS",
    "AllocOp",
    "BlockIdxOp",
    "BufferType",
    "CrossCoreSyncOp",
    "DavinciKernelOp",
    "FlagOp",
    "LoadIndexOp",
    "MaxOp",
    "MinOp",
    "PipeBarrierOp",
    "QueueOp",
    "SectionOp",
    "SetFlagOp",
    "SubBlockOp",
    "WaitFlagDevOp",
    "WaitFlagOp",
    "queue_op",
]
