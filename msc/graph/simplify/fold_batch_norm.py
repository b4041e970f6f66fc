"""Pass `fold-batch-norm`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from msc.analysis.constancy import is_constant
from msc.analysis.properties import WEIGHTS_HOISTED
from msc.dialects.ms.arithmetic import AddOp, MulOp
from msc.dialects.ms.convolution import WeightedWindowOp
from msc.dialects.ms.linear import DenseOp
from msc.dialects.ms.normalisation import BatchNormOp
from msc.dialects.ms.properties import PlainValue
from msc.dialects.ms.transposed_convolution import TransposedConvolutionOp
from msc.graph.emitter import CompositeEmitter, Emitter
from msc.graph.expand.expanders.normalisation import scale_and_shift
from msc.ir.contracts import Contract
from msc.ir.rewriting import apply_patterns


@dataclass(frozen=True)
class FoldBatchNorm(ModulePass):
    """Fold batch normalisation into the weight and bias of the convolution or dense layer before it.

    Takes: a graph with `ms.batch_norm` whose four statistics are parameters, after a layer with a parameter as weight
    whose result nothing else uses. Gives: the layer with weight * scale and (bias - mean) * scale + offset, where scale
    is gamma / sqrt(variance + epsilon), written as operations on parameters, which `hoist-parameters` moves to compile
    time. Other batch normalisations stay for `expand-composites`. Keeps: locations. Results differ by rounding; weights
    of f16 and bf16 are rounded once. Run it before `expand-composites`, which separates the bias from the layer.
    Example: `ms.batch_norm (ms.conv2d %x, %w), ...` becomes `ms.conv2d %x, %scaled, %shift`.
    """

    name = "fold-batch-norm"
    contract = Contract(breaks=(WEIGHTS_HOISTED,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [_Fold()], owner=self.name)


class _Fold(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, BatchNormOp) or not isinstance(op.x, OpResult):
            return
        layer = op.x.op
        if not isinstance(layer, WeightedWindowOp | DenseOp) or not _folds(op, layer):
            return
        emit = CompositeEmitter(op)
        scale, shift = scale_and_shift(op, emit)
        weight = _scaled(scale, layer, emit)
        bias = shift if layer.bias is None else emit(AddOp, emit(MulOp, layer.bias, scale), shift)
        ops = emit.finished(weight, bias)
        folded = type(layer)(layer.operands[0], weight, bias, result_types=None, **_properties(layer))
        folded.location = layer.location
        rewriter.replace(op, [*ops, folded], [folded.result])
        rewriter.erase(layer)


def _folds(norm: BatchNormOp, layer: WeightedWindowOp | DenseOp) -> bool:
    """Whether all but the input is constant, nothing else uses the layer's result, and its axis 1 is the outputs."""
    constants: tuple[SSAValue, ...] = (*norm.operands[1:], *layer.operands[1:])
    if isinstance(layer, DenseOp) and len(layer.shape(0)) != 2:
        return False
    return layer.result.has_one_use() and all(map(is_constant, constants))


def _scaled(scale: SSAValue, layer: WeightedWindowOp | DenseOp, emit: Emitter) -> SSAValue:
    """The weight times a factor for each output channel: its first axis, the second in a group of a transposed one."""
    shape = layer.shape(1)
    if not isinstance(layer, TransposedConvolutionOp):
        return emit(MulOp, layer.weight, emit.reshape(scale, (shape[0], *(1 for _ in shape[1:]))))
    group, (inputs, outputs, *kernel) = layer.int_("group"), shape
    apart = emit.reshape(layer.weight, (group, inputs // group, outputs, *kernel))
    factors = emit.reshape(scale, (group, 1, outputs, *(1 for _ in kernel)))
    return emit.reshape(emit(MulOp, apart, factors), shape)


def _properties(layer: WeightedWindowOp | DenseOp) -> dict[str, PlainValue]:
    if not isinstance(layer, WeightedWindowOp):
        return {}
    lists: dict[str, PlainValue] = {name: layer.ints(name) for name in ("pad", "stride", "dilation")}
    if isinstance(layer, TransposedConvolutionOp):
        lists["output_padding"] = layer.ints("output_padding")
    return lists | {"pad_mode": layer.word("pad_mode"), "group": layer.int_("group")}
