"""Operators of functions that stand elsewhere, a row each; labels and tables as operators."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dtypes import as_dtype
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor, concrete
from msc.ops import (
    activation,
    arithmetic,
    comparison,
    compositions,
    creation,
    draws,
    elementwise,
    images,
    joining,
    linear,
    losses,
    matrices,
    methods,
    ordering,
    random,
    rearranging,
    reductions,
    scalars,
    scattering,
    selection,
    sequence_losses,
    shapes,
    statistics,
    unary,
    windows,
)
from msc.ops.operands import cast
from msc.ops.outside import on_arrays
from msc.ops.primitive import operator

__all__ = [
    "GLU",
    "AccumulateNV2",
    "Addcdiv",
    "Addcmul",
    "ApproximateEqual",
    "BatchToSpace",
    "BatchToSpaceND",
    "Bernoulli",
    "Bincount",
    "Bucketize",
    "CTCGreedyDecoder",
    "CTCLoss",
    "CTCLossV2",
    "Cauchy",
    "Cdist",
    "ChannelShuffle",
    "Conv2DBackpropInput",
    "Conv2DTranspose",
    "CountNonZero",
    "Cross",
    "Cummax",
    "Cummin",
    "Dense",
    "DiagPart",
    "Dropout2D",
    "Dropout3D",
    "DropoutDoMask",
    "DropoutGenMask",


    "Einsum",
    "EmbeddingLookup",
    "Eps",
    "EqualCount",
    "EuclideanNorm",
    "Expand",
    "FastGelu",
    "FillDiagonal",
    "Fills",
    "Fmax",
    "Fmin",
    "Gamma",
    "Gcd",
    "Ger",
    "Heaviside",
    "Hypot",
    "IdentityN",
    "Imag",
    "InTopK",
    "IndexFill",
    "InplaceAdd",
    "InplaceSub",
    "InplaceUpdate",
    "InvertPermutation",
    "Lcm",
    "LeftShift",
    "LogSpace",
    "Logit",
    "MaskedScatter",
    "MatrixBandPart",
    "Median",
    "MulNoNan",
    "Multinomial",
    "NanToNum",
    "NextAfter",
    "Padding",
    "Poisson",
    "PopulationCount",
    "RandomCategorical",
    "RandomGamma",
    "RandomPoisson",
    "RandomShuffle",
    "Randperm",
    "Real",
    "Renorm",
    "RightShift",
    "Roll",
    "ScalarCast",
    "ScalarToArray",
    "SearchSorted",
    "SegmentMax",
    "SegmentMean",
    "SegmentMin",
    "SegmentProd",
    "SegmentSum",
    "Sinc",
    "SoftMarginLoss",
    "SpaceToBatch",
    "SpaceToBatchND",
    "SquareSumAll",
    "StandardLaplace",
    "TensorScatterDiv",
    "TensorScatterMul",
    "Trace",
    "TransposeView",
    "TrilIndices",
    "TriuIndices",
    "TruncateDiv",
    "TruncateMod",
    "TruncatedNormal",
    "TupleToArray",
    "UniqueConsecutive",
    "UnravelIndex",
    "UnsortedSegmentMax",
    "UnsortedSegmentMin",
    "UnsortedSegmentProd",
    "Xdivy",
    "bounding_box_decode",
    "bounding_box_encode",
    "check_numerics",
    "choice_with_mask",
    "ctc_greedy_decoder",
    "embedding",
    "soft_shrink",
]  # fmt: skip

# Sequences of labels.


def _ctc(
    x: Tensor,
    labels_indices: Tensor,
    labels_values: Tensor,
    sequence_length: Tensor,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
) -> tuple[Tensor, Tensor]:
    """The CTC loss `[batch]` of inputs `[steps, batch, classes]`, whose last class is the blank, and its gradient."""
    if preprocess_collapse_repeated or not ctc_merge_repeated:
        raise ApiValueError("MSC0203", "CTCLoss: labels are given as they are, and repetitions are merged in outputs")
    places, values = concrete(labels_indices, "CTCLoss"), concrete(labels_values, "CTCLoss")
    batch = x.shape[1]
    many = np.bincount(places[:, 0], minlength=batch)
    table = np.zeros((batch, max(int(many.max(initial=0)), 1)), np.int64)
    table[places[:, 0], places[:, 1]] = values
    lengths = cast(sequence_length, dtypes.int64)

    from msc.frontend.transforms.api import value_and_grad

    def loss(given: Tensor) -> Tensor:
        found, _ = sequence_losses.ctc_loss(
            activation.log_softmax(given, -1),
            Tensor(table),
            lengths,
            Tensor(many),
            x.shape[2] - 1,
            "none",
            ignore_longer_outputs_than_inputs,
        )
        return found

    losses_, gradient = value_and_grad(loss)(x)
    return losses_, gradient


def _ctc_v2(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    *,
    blank: int = 0,
    reduction: str = "none",
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """The CTC loss, and the logs of the forward chances."""
    return sequence_losses.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)


def ctc_greedy_decoder(
    inputs: Tensor, sequence_length: Tensor, merge_repeated: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The most likely classes of steps without blanks (the last class): indices, values, shape, -log of chances."""

    def decoded(x: Any, lengths: Any) -> Any:
        return _decoded(x, lengths, merge_repeated)

    return on_arrays("ctc_greedy_decoder", decoded, inputs, sequence_length)


def _decoded(x: Any, lengths: Any, merge_repeated: bool) -> tuple[Any, ...]:
    blank, rows = x.shape[2] - 1, list[list[int]]()
    best = x.argmax(2)
    for b, length in enumerate(lengths):
        row, before = list[int](), -1
        for t in range(int(length)):
            c = int(best[t, b])
            if c != blank and not (merge_repeated and c == before):
                row.append(c)
            before = c
        rows.append(row)
    places = np.array([(b, i) for b, row in enumerate(rows) for i in range(len(row))], np.int64).reshape(-1, 2)
    values = np.array([c for row in rows for c in row], np.int64)
    shape = np.array([len(rows), max(map(len, rows), default=0)], np.int64)
    score = np.array([[-sum(x[t, b].max() for t in range(int(n)))] for b, n in enumerate(lengths)], x.dtype)
    return places, values, shape, score


# Layers.


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """Rows of a table; that of `padding_idx` has no gradient."""
    if max_norm is not None or scale_grad_by_freq or norm_type != 2.0:
        raise ApiValueError("MSC0203", "embedding: max_norm and scale_grad_by_freq are not there")
    if padding_idx is not None:
        mask = Tensor(np.arange(weight.shape[0]).reshape(-1, 1) == padding_idx % weight.shape[0])
        weight = selection.where(mask, methods.stop_gradient(weight), weight)
    return selection.gather(weight, input, 0)


def _embedding_lookup(input_params: Tensor, input_indices: Tensor, offset: int) -> Tensor:
    """Rows of a table whose first has the number `offset`; 0 for numbers that are not there."""
    places = arithmetic.sub(input_indices, offset)
    there = comparison.logical_and(places >= 0, places < input_params.shape[0])
    rows = selection.gather(input_params, activation.clamp(places, 0, input_params.shape[0] - 1), 0)
    mask = shapes.reshape(there, (*places.shape, *(1,) * (input_params.ndim - 1)))
    return selection.where(mask, rows, cast(Tensor(0), rows.dtype))


def _transposed(
    x: Tensor,
    weight: Tensor,
    input_size: Any,
    *,
    out_channel: int,
    kernel_size: Any,
    pad_mode: str = "valid",
    pad: Any = 0,
    pad_list: Any = None,
    mode: int = 1,
    stride: Any = 1,
    dilation: Any = 1,
    group: int = 1,
    data_format: str = "NCHW",
) -> Tensor:
    """The gradient of a convolution by its input: x `[n, oc, ...]`, weight `[oc, ic / groups, ...]`, its sizes."""
    del out_channel, kernel_size, mode, pad_list
    if data_format != "NCHW":
        raise ApiValueError("MSC0203", f"Conv2DBackpropInput: data_format is {data_format!r}, not 'NCHW'")
    found = windows.transposed_convolution(x, weight, None, stride, pad_mode, pad, 0, dilation, group, 2)
    for axis, size in enumerate(shapes.sizes_of(input_size)[2:], start=2):
        if found.shape[axis] < size:
            found = images.pad(found, (0, 0) * (3 - axis) + (0, size - found.shape[axis]))
        elif found.shape[axis] > size:
            found = joining.narrow(found, axis, 0, size)
    return found


def soft_shrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """As softshrink."""
    return activation.softshrink(input, lambd)


def check_numerics(x: Tensor) -> Tensor:
    """The tensor. Raises MSC0203 for one with an element that is infinite or no number."""
    if not np.isfinite(concrete(x, "CheckNumerics")).all():
        raise ApiValueError("MSC0203", "CheckNumerics: an element is infinite or no number")
    return x


def _equal_count(x: Tensor, y: Tensor) -> Tensor:
    """How many elements are equal, in the element type of both and of one element."""
    return shapes.reshape(cast(reductions.sum(comparison.equal(x, y)), x.dtype), (1,))


def _einsum(operands: Sequence[Tensor], *, equation: str) -> Tensor:
    """Sums of products by an equation."""
    return linear.einsum(equation, *operands)


def _identities(x: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors."""
    return tuple(x)


def _square_sums(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The sums of the squares of both."""
    return reductions.sum(unary.square(x)), reductions.sum(unary.square(y))


def _inverse_permutation(input_x: Sequence[int]) -> tuple[int, ...]:
    """Which place each number has."""
    return tuple(int(i) for i in np.argsort(np.asarray(input_x)))


def _unravel(indices: Tensor, dims: Tensor) -> Tensor:
    """Coordinates `[rank, n]` of flat places."""
    found = on_arrays("UnravelIndex", lambda i, d: np.stack(np.unravel_index(i, tuple(d))), indices, dims)
    return cast(found, indices.dtype)


def _euclidean(x: Tensor, axes: Any, *, keep_dims: bool = False) -> Tensor:
    """The root of the sum of squares along axes."""
    return reductions.norm(x, 2, shapes.sizes_of(axes), keep_dims)


def _count_non_zero(x: Tensor, *, dims: Any = None) -> Tensor:
    """How many elements are not 0 along axes (Int64)."""
    return cast(reductions.sum(cast(comparison.not_equal(x, 0), dtypes.int64), dims), dtypes.int64)


def _tri_indices(function: Callable[..., Any]) -> Callable[..., Any]:
    def indices(*, row: int, col: int, offset: int = 0, dtype: Any = dtypes.int32) -> Tensor:
        return cast(function(row, col, offset), as_dtype(dtype))

    indices.__doc__ = function.__doc__
    return indices


def _median(
    x: Tensor, *, global_median: bool = False, axis: int = 0, keep_dims: bool = False, ignore_nan: bool = False
) -> Any:
    """The median along an axis and where it stands, or of all elements."""
    if ignore_nan:
        return statistics.nanmedian(shapes.ravel(x) if global_median else x, -1 if global_median else axis, keep_dims)
    return ordering.median(x if not global_median else shapes.ravel(x), 0 if global_median else axis, keep_dims)


choice_with_mask: Any = None
"""Set below: `RandomChoiceWithMask` as a function."""


def _as_functions() -> tuple[Any, Any, Any]:
    from msc.ops import detection

    def choice(input_x: Tensor, count: int = 256, seed: int | None = None) -> tuple[Tensor, Tensor]:
        """`count` places of true elements at random, and which rows are such."""
        return detection.RandomChoiceWithMask(count, seed or 0)(input_x)

    def encode(
        anchor_box: Tensor, groundtruth_box: Tensor, means: Any = (0.0, 0.0, 0.0, 0.0), stds: Any = (1.0, 1.0, 1.0, 1.0)
    ) -> Tensor:
        """How boxes differ from anchors."""
        return detection.BoundingBoxEncode(means, stds)(anchor_box, groundtruth_box)

    def decode(
        anchor_box: Tensor,
        deltas: Tensor,
        max_shape: Any,
        means: Any = (0.0, 0.0, 0.0, 0.0),
        stds: Any = (1.0, 1.0, 1.0, 1.0),
        wh_ratio_clip: float = 0.016,
    ) -> Tensor:
        """Boxes of anchors and differences."""
        return detection.BoundingBoxDecode(max_shape, means, stds, wh_ratio_clip)(anchor_box, deltas)

    return choice, encode, decode


choice_with_mask, bounding_box_encode, bounding_box_decode = _as_functions()


AccumulateNV2 = operator("AccumulateNV2", statistics.accumulate_n)
Addcdiv, Addcmul = operator("Addcdiv", linear.addcdiv), operator("Addcmul", linear.addcmul)
ApproximateEqual = operator("ApproximateEqual", elementwise.approximate_equal, "tolerance")
BatchToSpace = operator(
    "BatchToSpace",
    lambda x, *, block_size, crops: rearranging.batch_to_space_nd(x, block_size, crops),
    "block_size crops",
)
BatchToSpaceND = operator("BatchToSpaceND", rearranging.batch_to_space_nd, "block_shape crops")
Bernoulli = operator(
    "Bernoulli", lambda x, p, *, seed=-1, offset=0: random.bernoulli(x, p, None if seed < 0 else seed), "seed offset"
)
Bincount = operator(
    "Bincount", lambda array, size, weights: cast(statistics.bincount(array, weights, int(size)), weights.dtype)
)
Bucketize = operator("Bucketize", statistics.bucketize, "boundaries")
CTCGreedyDecoder = operator("CTCGreedyDecoder", ctc_greedy_decoder, "merge_repeated")
CTCLoss = operator("CTCLoss", _ctc, "preprocess_collapse_repeated ctc_merge_repeated ignore_longer_outputs_than_inputs")
CTCLossV2 = operator("CTCLossV2", _ctc_v2, "blank reduction zero_infinity")
Cauchy = operator("Cauchy", draws.cauchy_values, "size median sigma")
Cdist = operator("Cdist", losses.cdist, "p")
ChannelShuffle = operator("ChannelShuffle", lambda x, *, group: _channel_shuffle(x, group), "group")
Conv2DBackpropInput = operator(
    "Conv2DBackpropInput",
    _transposed,
    "out_channel kernel_size pad_mode pad pad_list mode stride dilation group data_format",
)
Conv2DTranspose = operator(
    "Conv2DTranspose",
    _transposed,
    "out_channel kernel_size pad_mode pad pad_list mode stride dilation group data_format",
)
CountNonZero = operator("CountNonZero", _count_non_zero, "dims")
Cross = operator(
    "Cross", lambda input, other, *, dim=-65530: linear.cross(input, other, None if dim == -65530 else dim), "dim"
)
Cummax, Cummin = operator("Cummax", ordering.cummax, "axis"), operator("Cummin", ordering.cummin, "axis")
Dense = operator("Dense", linear.dense)
DiagPart = operator("DiagPart", lambda x: matrices.diagonal(x))
Dropout2D, Dropout3D = (
    operator("Dropout2D", draws.drop_channels_values("Dropout2D"), "keep_prob"),
    operator("Dropout3D", draws.drop_channels_values("Dropout3D"), "keep_prob"),
)
DropoutDoMask = operator("DropoutDoMask", draws.do_mask_values)
DropoutGenMask = operator("DropoutGenMask", draws.gen_mask_values, "Seed0 Seed1")
Einsum = operator("Einsum", _einsum, "equation")
EmbeddingLookup = operator("EmbeddingLookup", _embedding_lookup)
Eps, EqualCount = operator("Eps", elementwise.eps), operator("EqualCount", _equal_count)
EuclideanNorm = operator("EuclideanNorm", _euclidean, "keep_dims")
Expand, FastGelu, Fills = (
    operator("Expand", rearranging.expand),
    operator("FastGelu", activation.fast_gelu),
    operator("Fills", statistics.fills),
)
FillDiagonal = operator("FillDiagonal", statistics.fill_diagonal_values, "fill_value wrap")
Fmax, Fmin = operator("Fmax", compositions.fmax), operator("Fmin", compositions.fmin)
GLU = operator("GLU", activation.glu, "axis")
Gamma, Poisson = (
    operator("Gamma", draws.gamma_values, "seed seed2"),
    operator("Poisson", draws.poisson_values, "seed seed2"),
)
Gcd, Lcm, Ger = operator("Gcd", elementwise.gcd), operator("Lcm", elementwise.lcm), operator("Ger", compositions.ger)
Heaviside, Hypot = operator("Heaviside", compositions.heaviside), operator("Hypot", compositions.hypot)
IdentityN, Imag, Real = (
    operator("IdentityN", _identities),
    operator("Imag", elementwise.imag),
    operator("Real", elementwise.real),
)
InTopK = operator("InTopK", lambda x1, x2, *, k: statistics.intopk(x1, x2, k), "k")
IndexFill = operator("IndexFill", scattering.index_fill)
InplaceAdd = operator("InplaceAdd", lambda x, v, *, indices: statistics.inplace_add(x, v, indices), "indices")
InplaceSub = operator("InplaceSub", lambda x, v, *, indices: statistics.inplace_sub(x, v, indices), "indices")
InplaceUpdate = operator("InplaceUpdate", lambda x, v, *, indices: statistics.inplace_update(x, v, indices), "indices")
InvertPermutation = operator("InvertPermutation", _inverse_permutation)
LeftShift, RightShift = (
    operator("LeftShift", comparison.bitwise_left_shift),
    operator("RightShift", comparison.bitwise_right_shift),
)
LogSpace = operator("LogSpace", creation.logspace, "steps base dtype")
Logit = operator("Logit", unary.logit, "eps")
MaskedScatter = operator("MaskedScatter", statistics.masked_scatter)
MatrixBandPart = operator("MatrixBandPart", rearranging.matrix_band_part)
Median = operator("Median", _median, "global_median axis keep_dims ignore_nan")
MulNoNan = operator("MulNoNan", elementwise.mul_no_nan_values)
Multinomial = operator("Multinomial", draws.multinomial_values, "seed seed2 dtype")
NanToNum = operator("NanToNum", compositions.nan_to_num, "nan posinf neginf")
NextAfter, PopulationCount = (
    operator("NextAfter", elementwise.nextafter),
    operator("PopulationCount", elementwise.population_count),
)
Padding = operator("Padding", rearranging.padding, "pad_dim_size")
RandomCategorical = operator(
    "RandomCategorical",
    lambda logits, num_sample, seed=0, *, dtype=dtypes.int64: draws.random_categorical(logits, num_sample, seed, dtype),
    "dtype",
)
RandomGamma = operator(
    "RandomGamma",
    lambda shape, alpha, *, seed=0, seed2=0: draws.random_gamma(shape, alpha, (seed or seed2) or None),
    "seed seed2",
)
RandomPoisson = operator(
    "RandomPoisson",
    lambda shape, rate, *, seed=0, seed2=0, dtype=dtypes.int64: draws.random_poisson(
        shape, rate, (seed or seed2) or None, dtype
    ),
    "seed seed2 dtype",
)
RandomShuffle = operator(
    "RandomShuffle", lambda x, *, seed=0, seed2=0: draws.shuffle(x, (seed or seed2) or None), "seed seed2"
)
Randperm = operator(
    "Randperm",
    lambda n, *, max_length=1, pad=-1, dtype=dtypes.int32: random.randperm(int(n), dtype=dtype),
    "max_length pad dtype",
)
Renorm = operator("Renorm", lambda x, *, p, dim, maxnorm: statistics.renorm(x, p, dim, maxnorm), "p dim maxnorm")
Roll = operator("Roll", lambda x, *, shift, axis: joining.roll(x, shift, axis), "shift axis")
ScalarCast, ScalarToArray = (
    operator("ScalarCast", scalars.scalar_cast),
    operator("ScalarToArray", scalars.scalar_to_array),
)
SearchSorted = operator(
    "SearchSorted",
    lambda s, v, *, dtype=dtypes.int64, right=False: cast(ordering.searchsorted(s, v, right=right), as_dtype(dtype)),
    "dtype right",
)
SegmentMax, SegmentMin = (
    operator("SegmentMax", statistics.sorted_segments_values(statistics.unsorted_segment_max)),
    operator("SegmentMin", statistics.sorted_segments_values(statistics.unsorted_segment_min)),
)
SegmentSum = operator("SegmentSum", statistics.sorted_segments_values(scattering.unsorted_segment_sum))
SegmentMean, SegmentProd = (
    operator("SegmentMean", statistics.sorted_segments_values(statistics.segment_mean_values)),
    operator("SegmentProd", statistics.sorted_segments_values(statistics.unsorted_segment_prod)),
)
Sinc = operator("Sinc", compositions.sinc)
SoftMarginLoss = operator("SoftMarginLoss", losses.soft_margin_loss, "reduction")
SpaceToBatch = operator(
    "SpaceToBatch",
    lambda x, *, block_size, paddings: rearranging.space_to_batch_nd(x, block_size, paddings),
    "block_size paddings",
)
SpaceToBatchND = operator(
    "SpaceToBatchND",
    lambda x, *, block_shape, paddings: rearranging.space_to_batch_nd(x, block_shape, paddings),
    "block_shape paddings",
)
SquareSumAll = operator("SquareSumAll", _square_sums)
StandardLaplace = operator(
    "StandardLaplace",
    lambda shape, *, seed=0, seed2=0: draws.standard_laplace(shape, (seed or seed2) or None),
    "seed seed2",
)
TensorScatterDiv, TensorScatterMul = (
    operator("TensorScatterDiv", statistics.tensor_scatter_div),
    operator("TensorScatterMul", scattering.tensor_scatter_mul),
)
Trace, TransposeView = operator("Trace", matrices.trace), operator("TransposeView", shapes.transpose)
TrilIndices = operator("TrilIndices", _tri_indices(creation.tril_indices), "row col offset dtype")
TriuIndices = operator("TriuIndices", _tri_indices(creation.triu_indices), "row col offset dtype")
TruncateDiv, TruncateMod = (
    operator("TruncateDiv", compositions.truncate_div),
    operator("TruncateMod", compositions.truncate_mod),
)
TruncatedNormal = operator("TruncatedNormal", draws.truncated_normal_values, "seed seed2 dtype")
TupleToArray = operator("TupleToArray", methods.tuple_to_array)
UniqueConsecutive = operator(
    "UniqueConsecutive",
    lambda x, *, return_inverse=False, return_counts=False, dim=None: statistics.unique_consecutive(
        x, return_inverse, return_counts, dim
    ),
    "return_inverse return_counts dim",
)
UnravelIndex = operator("UnravelIndex", _unravel)
UnsortedSegmentMax, UnsortedSegmentMin = (
    operator("UnsortedSegmentMax", statistics.unsorted_segment_max),
    operator("UnsortedSegmentMin", statistics.unsorted_segment_min),
)
UnsortedSegmentProd = operator("UnsortedSegmentProd", statistics.unsorted_segment_prod)
Xdivy = operator("Xdivy", elementwise.xdivy)


def _channel_shuffle(x: Tensor, group: int) -> Tensor:
    from msc.ops import sampling

    return sampling.channel_shuffle(x, group)
