"""Functions on tensors and operators as objects, as MindSpore's `ops`."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from msc.frontend.boundary import publish
from msc.frontend.errors import missing_name
from msc.frontend.parameter import Parameter, ParameterTuple
from msc.frontend.tensor import Tensor
from msc.frontend.transforms.api import GradOperation, get_grad, grad, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap
from msc.ops.activation import (
    celu, clamp, clip, elu, fast_gelu, gelu, glu, gumbel_softmax, hardshrink, hardsigmoid,
    hardswish, hardtanh, leaky_relu, log_softmax, logsigmoid, mish, prelu, relu, relu6, selu, silu, softmax,
    softmin, softplus, softshrink, softsign, swish, tanhshrink, threshold,
)
from msc.ops.aliases import (
    divide, floor_div, multiply, pack, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum, remainder,
    slice, subtract, tensor_add, tensor_div, tensor_exp, tensor_floordiv, tensor_ge, tensor_gt, tensor_le,
    tensor_lt, tensor_mod, tensor_mul, tensor_pow, tensor_sub, true_divide,
)
from msc.ops.arithmetic import add, atan2, div, floor_divide, floor_mod, fmod, maximum, minimum, mul, pow, sub
from msc.ops.clipping import clip_by_global_norm, clip_by_norm, clip_by_value
from msc.ops.comparison import (
    bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor, eq, equal, ge, greater,
    greater_equal, gt, isclose, le, less, less_equal, logical_and, logical_or, logical_xor, lt, ne, not_equal,
)
from msc.ops.creation import (
    arange, empty, eye, fill, from_numpy, full, full_like, linspace, logspace, meshgrid, new_ones, new_zeros,
    one_hot, ones, ones_like, range, tensor, tril, tril_indices, triu, triu_indices, zeros, zeros_like,
)
from msc.ops.custom import Custom
from msc.ops.gradient_hooks import HookBackward, InsertGradientOf
from msc.ops.images import interpolate, pad, pixel_shuffle, pixel_unshuffle, unfold
from msc.ops.indexing import getitem, setitem
from msc.ops.joining import (
    cat, chunk, concat, concatenate, flip, fliplr, flipud, hstack, narrow, repeat_interleave, reverse, roll,
    rot90, split, stack, tensor_split, unbind, unstack, vstack,
)
from msc.ops.linear import (
    addcdiv, addcmul, addmm, addmv, baddbmm, batch_matmul, bias_add, bmm, cross, dense, dot, einsum, inner,
    matmul, mm, mv, outer, tensor_dot, tensordot,
)
from msc.ops.losses import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cdist, cosine_embedding_loss, cosine_similarity,
    cross_entropy, hinge_embedding_loss, huber_loss, kl_div, l1_loss, margin_ranking_loss, mse_loss, nll_loss,
    smooth_l1_loss, soft_margin_loss, softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy,
    triplet_margin_loss,
)
from msc.ops.losses import (
    focal_loss, gaussian_nll_loss, multi_margin_loss, multilabel_soft_margin_loss, poisson_nll_loss,
)
from msc.ops.mapping import HyperMap, Map, MultitypeFuncGraph, partial
from msc.ops.matrices import diag, diagonal, trace
from msc.ops.methods import (
    is_floating_point, is_tensor, itemset, numel, scalar_to_tensor, stop_gradient, tuple_to_array,
)
from msc.ops.normalisation import (
    batch_norm, dropout, dropout1d, dropout2d, dropout3d, group_norm, l2_normalize, layer_norm, lrn, normalize,
    rms_norm,
)
from msc.ops.operators.arithmetic import (
    Abs, ACos, Acosh, Add, AddN, ApproximateEqual, Asin, Asinh, Atan, Atan2, Atanh, BitwiseAnd, BitwiseOr,
    BitwiseXor, Cast, Ceil, CeLU, Cos, Cosh, Div, DivNoNan, Divs, Elu, Equal, Erf, Erfc, Exp, Expm1, FastGeLU,
    Floor, FloorDiv, FloorMod, GeLU, Greater, GreaterEqual, HShrink, HSigmoid, HSwish, Identity, Inv, Invert,
    IsClose, IsFinite, IsInf, IsNan, Lerp, Less, LessEqual, Log, Log1p, LogicalAnd, LogicalNot, LogicalOr,
    LogicalXor, LogSoftmax, Maximum, Minimum, Mish, Mod, Mul, Muls, Neg, NotEqual, Pow, PReLU, RealDiv,
    Reciprocal, ReLU, ReLU6, Rint, Round, Rsqrt, Select, SeLU, Sigmoid, Sign, SiLU, Sin, Sinh, Softmax, Softplus,
    SoftShrink, Softsign, Sqrt, Square, SquaredDifference, Sub, Tan, Tanh, TensorAdd, Trunc, Xlogy, add_n,
    div_no_nan, lerp, xlogy,
)
from msc.ops.operators.layers import (
    LRN, Assign, AssignAdd, AssignSub, AvgPool, AvgPool3D, BatchMatMul, BatchNorm, BCEWithLogitsLoss, BiasAdd,
    BinaryCrossEntropy, Conv2D, Conv3D, Depend, Dropout, KLDivLoss, L2Loss, L2Normalize, LayerNorm, MakeTuple,
    MatMul, MatMulExt, MaxPool, MaxPool3D, NLLLoss, Print, ResizeBilinear, ResizeBilinearV2,
    ResizeNearestNeighbor, ResizeNearestNeighborV2, RmsNorm, SigmoidCrossEntropyWithLogits, SmoothL1Loss,
    SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits, StandardNormal, TupleGetItem, assign,
    assign_add, assign_sub, depend, l2_loss, print_,
)
from msc.ops.operators.shapes import (
    Argmax, ArgMaxWithValue, Argmin, ArgMinWithValue, BroadcastTo, Concat, CumProd, CumSum, DepthToSpace, Diag,
    DType, DynamicShape, ExpandDims, Eye, Fill, FillV2, Flatten, Gather, GatherD, GatherNd, GatherV2, IndexAdd,
    LinSpace, MaskedFill, MaskedSelect, MeanExt, Meshgrid, MirrorPad, NonZero, OneHot, Ones, OnesLike, Pack, Pad,
    PadV3, Range, Rank, ReduceAll, ReduceAny, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceStd, ReduceSum,
    Reshape, ReverseSequence, ReverseV2, ScatterNd, Shape, Size, Slice, Sort, SpaceToDepth, Split, SplitV,
    SplitWithSize, Squeeze, Stack, StridedSlice, SumExt, TensorScatterAdd, TensorScatterElements,
    TensorScatterMax, TensorScatterMin, TensorScatterSub, TensorScatterUpdate, TensorShape, Tile, TopK, Transpose,
    Tril, Triu, Unique, Unpack, UnsortedSegmentSum, Unstack, Zeros, ZerosLike, dtype, dyn_shape, rank,
    reverse_sequence, shape, size, strided_slice,
)
from msc.ops.ordering import argsort, cummax, cummin, cumprod, median, searchsorted, sort, topk
from msc.ops.primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer, prim_attr_register, several, constexpr
from msc.ops.random import (
    bernoulli, multinomial, normal, rand, rand_like, randint, randn, randn_like, randperm, standard_normal,
    uniform,
)
from msc.ops.reductions import (
    all, amax, amin, any, argmax, argmin, count_nonzero, cumsum, logsumexp, max, max_with_index, mean, min,
    min_with_index, norm, prod, ptp, std, std_mean, sum, var, var_mean,
)
from msc.ops.scattering import (
    index_add, index_fill, scatter, scatter_add, scatter_nd, tensor_scatter_add, tensor_scatter_elements,
    tensor_scatter_max, tensor_scatter_min, tensor_scatter_mul, tensor_scatter_sub, tensor_scatter_update,
    unsorted_segment_sum,
)
from msc.ops.selection import (
    argwhere, gather, gather_d, gather_elements, gather_nd, index_select, masked_fill, masked_select, nonzero,
    select, take, unique, where,
)
from msc.ops.sequence_losses import ctc_loss, multilabel_margin_loss
from msc.ops.shapes import (
    broadcast_to, cast, expand_as, expand_dims, flatten, movedim, permute, ravel, reshape, reshape_as, squeeze,
    swapaxes, t, tile, transpose, unflatten, unsqueeze,
)
from msc.ops.summaries import HistogramSummary, ImageSummary, ScalarSummary, TensorSummary
from msc.ops.unary import (
    abs, absolute, acos, acosh, arccos, arccosh, arcsin, arcsinh, arctan, arctanh, asin, asinh, atan, atanh,
    bitwise_not, ceil, cos, cosh, deg2rad, erf, erfc, exp, exp2, expm1, floor, frac, identity, invert, isfinite,
    isinf, isnan, log, log1p, log2, log10, logical_not, logit, neg, negative, rad2deg, reciprocal, rint, round,
    rsqrt, sigmoid, sign, sin, sinh, sqrt, square, tan, tanh, trunc,
)
from msc.ops.windows import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d,
    avg_pool1d, avg_pool2d, conv1d, conv2d, conv3d, max_pool2d,
)

__all__ = [
    "LRN", "ACos", "Abs", "Acosh", "Add", "AddN", "ApproximateEqual", "ArgMaxWithValue", "ArgMinWithValue", "Argmax",
    "Argmin", "Asin", "Asinh", "Assign", "AssignAdd", "AssignSub", "Atan", "Atan2", "Atanh", "AvgPool", "AvgPool3D",
    "BCEWithLogitsLoss", "BatchMatMul", "BatchNorm", "BiasAdd", "BinaryCrossEntropy", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor", "BroadcastTo", "Cast", "CeLU", "Ceil", "Concat", "Conv2D", "Conv3D", "Cos", "Cosh", "CumProd",
    "CumSum", "Custom", "DType", "Depend", "DepthToSpace", "Diag", "Div", "DivNoNan", "Divs", "Dropout",
    "DynamicShape", "Elu", "Equal", "Erf", "Erfc", "Exp", "ExpandDims", "Expm1", "Eye", "FastGeLU", "Fill", "FillV2",
    "Flatten", "Floor", "FloorDiv", "FloorMod", "Gather", "GatherD", "GatherNd", "GatherV2", "GeLU", "GradOperation",
    "Greater", "GreaterEqual", "HShrink", "HSigmoid", "HSwish", "HistogramSummary",
    "HookBackward", "HyperMap", "Identity", "ImageSummary",
    "IndexAdd",
    "InsertGradientOf", "Inv", "Invert", "IsClose", "IsFinite", "IsInf", "IsNan", "KLDivLoss", "L2Loss", "L2Normalize",
    "LayerNorm", "Lerp", "Less", "LessEqual", "LinSpace", "Log", "Log1p", "LogSoftmax", "LogicalAnd", "LogicalNot",
    "LogicalOr", "LogicalXor", "MakeTuple", "Map", "MaskedFill", "MaskedSelect", "MatMul", "MatMulExt", "MaxPool",
    "MaxPool3D", "Maximum", "MeanExt", "Meshgrid", "Minimum", "MirrorPad", "Mish", "Mod", "Mul", "Muls",
    "MultitypeFuncGraph", "NLLLoss",
    "Neg", "NonZero", "NotEqual", "OneHot", "Ones", "OnesLike", "PReLU", "Pack", "Pad", "PadV3", "Parameter",
    "ParameterTuple", "Pow", "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "Print", "Range", "Rank",
    "ReLU", "ReLU6", "RealDiv", "Reciprocal", "ReduceAll", "ReduceAny", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceStd", "ReduceSum", "Reshape", "ResizeBilinear", "ResizeBilinearV2", "ResizeNearestNeighbor",
    "ResizeNearestNeighborV2", "ReverseSequence", "ReverseV2", "Rint", "RmsNorm", "Round", "Rsqrt", "ScalarSummary",
    "ScatterNd", "SeLU", "Select", "Shape", "SiLU", "Sigmoid", "SigmoidCrossEntropyWithLogits", "Sign", "Sin", "Sinh",
    "Size", "Slice", "SmoothL1Loss", "SoftShrink", "Softmax", "SoftmaxCrossEntropyWithLogits", "Softplus", "Softsign",
    "Sort", "SpaceToDepth", "SparseSoftmaxCrossEntropyWithLogits", "Split", "SplitV", "SplitWithSize", "Sqrt",
    "Square", "SquaredDifference", "Squeeze", "Stack", "StandardNormal", "StridedSlice", "Sub", "SumExt", "Tan",
    "Tanh", "Tensor", "TensorAdd", "TensorScatterAdd", "TensorScatterElements", "TensorScatterMax",
    "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate", "TensorShape", "TensorSummary", "Tile", "TopK",
    "Transpose", "Tril", "Triu", "Trunc", "TupleGetItem", "Unique", "Unpack", "UnsortedSegmentSum", "Unstack",
    "Xlogy", "Zeros", "ZerosLike", "abs", "absolute", "acos", "acosh", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "add", "add_n", "addcdiv", "addcmul",
    "addmm", "addmv", "all", "amax", "amin", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctanh", "argmax", "argmin", "argsort", "argwhere", "asin", "asinh", "assign", "assign_add", "assign_sub",
    "atan", "atan2", "atanh", "avg_pool1d", "avg_pool2d", "baddbmm", "batch_matmul", "batch_norm", "bernoulli",
    "bias_add", "binary_cross_entropy", "binary_cross_entropy_with_logits", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bmm", "broadcast_to", "cast", "cat", "cdist",
    "ceil", "celu", "chunk", "clamp", "clip", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "concat",
    "concatenate", "constexpr",
    "conv1d", "conv2d", "conv3d", "cos", "cosh", "cosine_embedding_loss", "cosine_similarity",
    "count_nonzero", "cross", "cross_entropy", "ctc_loss", "cummax", "cummin", "cumprod", "cumsum", "deg2rad", "dense",
    "depend",
    "diag", "diagonal", "div", "div_no_nan", "divide", "dot", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "dtype", "dyn_shape", "einsum", "elu", "empty", "eq", "equal", "erf", "erfc", "exp", "exp2", "expand_as",
    "expand_dims", "expm1", "eye", "fast_gelu", "fill", "flatten", "flip", "fliplr", "flipud", "floor", "floor_div",
    "floor_divide", "floor_mod", "fmod", "focal_loss", "frac", "from_numpy", "full", "full_like", "gather",
    "gather_d", "gather_elements", "gather_nd", "gaussian_nll_loss", "ge", "gelu", "get_grad", "getitem", "glu", "grad",
    "greater", "greater_equal", "group_norm", "gt", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hinge_embedding_loss", "hstack", "huber_loss", "identity", "index_add", "index_fill", "index_select",
    "inner", "interpolate", "invert", "is_floating_point", "is_tensor", "isclose", "isfinite", "isinf", "isnan",
    "itemset", "jacfwd", "jacrev", "jvp", "kl_div", "l1_loss", "l2_loss", "l2_normalize", "layer_norm", "le",
    "leaky_relu", "lerp", "less", "less_equal", "linspace", "log", "log1p", "log2", "log10", "log_softmax",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logsigmoid", "logspace", "logsumexp", "lrn",
    "lt", "margin_ranking_loss", "masked_fill", "masked_select", "matmul", "max", "max_pool2d", "max_with_index",
    "maximum", "mean", "median", "meshgrid", "min", "min_with_index", "minimum", "mish", "mm", "movedim", "mse_loss",
    "mul", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "multinomial", "multiply", "mv", "narrow", "ne", "neg",
    "negative", "new_ones", "new_zeros", "nll_loss", "nonzero", "norm", "normal", "normalize", "not_equal", "numel",
    "one_hot", "ones", "ones_like", "outer", "pack", "pad", "partial", "permute", "pixel_shuffle", "pixel_unshuffle",
    "poisson_nll_loss", "pow", "prelu", "prim_attr_register", "print_", "prod", "ptp", "rad2deg", "rand", "rand_like",
    "randint", "randn", "randn_like", "randperm", "range", "rank", "ravel", "reciprocal", "reduce_max", "reduce_mean",
    "reduce_min", "reduce_prod", "reduce_sum", "relu", "relu6", "remainder", "repeat_interleave", "reshape",
    "reshape_as", "reverse", "reverse_sequence", "rint", "rms_norm", "roll", "rot90", "round", "rsqrt",
    "scalar_to_tensor", "scatter", "scatter_add", "scatter_nd", "searchsorted", "select", "selu", "setitem",
    "several", "shape", "sigmoid", "sign", "silu", "sin", "sinh", "size", "slice", "smooth_l1_loss",
    "soft_margin_loss", "softmax", "softmax_cross_entropy_with_logits", "softmin", "softplus", "softshrink",
    "softsign", "sort", "sparse_softmax_cross_entropy", "split", "sqrt", "square", "squeeze", "stack",
    "standard_normal", "std", "std_mean", "stop_gradient", "strided_slice", "sub", "subtract", "sum", "swapaxes",
    "swish", "t", "take", "tan", "tanh", "tanhshrink", "tensor", "tensor_add", "tensor_div", "tensor_dot",
    "tensor_exp", "tensor_floordiv", "tensor_ge", "tensor_gt", "tensor_le", "tensor_lt", "tensor_mod", "tensor_mul",
    "tensor_pow", "tensor_scatter_add", "tensor_scatter_elements", "tensor_scatter_max", "tensor_scatter_min",
    "tensor_scatter_mul", "tensor_scatter_sub", "tensor_scatter_update", "tensor_split", "tensor_sub", "tensordot",
    "threshold", "tile", "topk", "trace", "transpose", "tril", "tril_indices", "triplet_margin_loss", "triu",
    "triu_indices", "true_divide", "trunc", "tuple_to_array", "unbind", "unflatten", "unfold", "uniform", "unique",
    "unsorted_segment_sum", "unsqueeze", "unstack", "value_and_grad", "var", "var_mean", "vjp", "vmap", "vstack",
    "where", "xlogy", "zeros", "zeros_like",
]


publish(globals(), __all__, "ops")


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        raise missing_name("msc.ops", name, __all__)
