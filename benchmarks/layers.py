"""Single layers: matrix products, convolutions of ResNet-50, and kernels that memory bounds."""

from __future__ import annotations

from benchmarks.model import GraphModel
from benchmarks.onnx_graph import OnnxGraph


class Matmul(GraphModel):
    """`[m, k] x [k, n]`; the right operand is an input, or constant as a layer's weights are."""

    def __init__(self, m: int, n: int, k: int, *, constant: bool = False) -> None:
        self.name = f"matmul-{m}" if m == n == k else f"matmul-{m}x{n}x{k}"
        self.inputs = {"a": (m, k)} if constant else {"a": (m, k), "b": (k, n)}
        self._right = (k, n)

    def nodes(self, graph: OnnxGraph) -> str:
        right = "b" if "b" in self.inputs else graph.weight("b", *self._right, fan_in=self._right[0])
        return graph.op("MatMul", "a", right)


class Conv(GraphModel):
    """A square convolution with bias and ReLU, of an image of `size` x `size`."""

    def __init__(self, inputs: int, outputs: int, size: int, kernel: int) -> None:
        self.name = f"conv{kernel}x{kernel}-{inputs}-{outputs}-{size}"
        self.inputs = {"x": (1, inputs, size, size)}
        self._weight = (outputs, inputs, kernel, kernel)

    def nodes(self, graph: OnnxGraph) -> str:
        outputs, kernel = self._weight[0], self._weight[2]
        operands = (graph.weight("weight", *self._weight), graph.weight("bias", outputs, fan_in=200))
        return graph.op("Relu", graph.op("Conv", "x", *operands, pads=[kernel // 2] * 4, strides=[1, 1]))


class Softmax(GraphModel):
    """Along rows."""

    def __init__(self, rows: int = 1024, columns: int = 1024) -> None:
        self.name = f"softmax-{columns}" if rows == columns else f"softmax-{rows}x{columns}"
        self.inputs = {"x": (rows, columns)}

    def nodes(self, graph: OnnxGraph) -> str:
        return graph.op("Softmax", "x", axis=-1)


class Attention(GraphModel):
    """Of twelve heads over a long sequence, without a mask."""

    def __init__(self, sequence: int, heads: int = 12, size: int = 64) -> None:
        self.name = f"attention-{sequence}"
        self.inputs = dict.fromkeys(("queries", "keys", "values"), (heads, sequence, size))
        self._scale = size**-0.5

    def nodes(self, graph: OnnxGraph) -> str:
        keys = graph.op("Transpose", "keys", perm=[0, 2, 1])
        scores = graph.op("Mul", graph.op("MatMul", "queries", keys), graph.constant("scale", self._scale))
        return graph.op("MatMul", graph.op("Softmax", scores, axis=-1), "values")


class CausalAttention(GraphModel):
    """Of twelve heads over a sequence whose places see those before them: one node, each engine's own way."""

    def __init__(self, sequence: int, heads: int = 12, size: int = 64) -> None:
        self.name = f"attention-causal-{sequence}"
        self.inputs = dict.fromkeys(("queries", "keys", "values"), (1, heads, sequence, size))

    def nodes(self, graph: OnnxGraph) -> str:
        return graph.op("Attention", "queries", "keys", "values", is_causal=1)


class AddLayerNorm(GraphModel):
    """A residual sum and its layer norm."""

    name = "add-layernorm"

    def __init__(self, rows: int = 1024, columns: int = 768) -> None:
        self.inputs = dict.fromkeys(("x", "y"), (rows, columns))
        self._columns = columns

    def nodes(self, graph: OnnxGraph) -> str:
        operands = (graph.weight("gamma", self._columns, fan_in=2), graph.weight("beta", self._columns, fan_in=2))
        return graph.op("LayerNormalization", graph.op("Add", "x", "y"), *operands, axis=-1, epsilon=1e-5)


class GeluChain(GraphModel):
    """Element-wise: bias, GeLU, scale, and a sum with the input."""

    name = "gelu-chain"

    def __init__(self, rows: int = 2048, columns: int = 2048) -> None:
        self.inputs = {"x": (rows, columns)}
        self._columns = columns

    def nodes(self, graph: OnnxGraph) -> str:
        y = graph.op("Gelu", graph.op("Add", "x", graph.weight("bias", self._columns, fan_in=2)))
        return graph.op("Add", graph.op("Mul", y, graph.constant("factor", 0.5)), "x")


LAYERS = (
    *(Matmul(n, n, n) for n in (256, 512, 1024, 2048)),
    *(Matmul(m, 1024, 1024, constant=True) for m in (1, 4, 16)),
    Matmul(1024, 16, 1024),
    *(Conv(c, c, size, 3) for c, size in ((64, 56), (128, 28), (256, 14), (512, 7))),
    *(Conv(a, b, size, 1) for a, b, size in ((64, 256, 56), (256, 64, 56), (128, 512, 28), (1024, 256, 14))),
    Conv(512, 2048, 7, 1),
    *(Attention(sequence) for sequence in (512, 2048)),
    CausalAttention(1024),
    Softmax(),
    AddLayerNorm(),
    GeluChain(),
)
