"""Operators that a random graph of open sizes grows by; each adds nodes, or nothing where no tensor suits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import GraphProto, ValueInfoProto, helper

from tests.open_sizes.graphs import BOOL, FLOAT, INT, Dim, Graph, M, N, Tensor, changed, is_float, with_axes

HIDDEN = -1
"""The kind of a tensor whose shape only the model knows: nothing else is computed from it."""
FAR = 2**62
"""An end beyond every size."""


def pointwise(graph: Graph) -> None:
    if x := graph.pick(is_float):
        graph.emit(graph.random.choice(["Abs", "Neg", "Sigmoid", "Tanh", "Relu", "Erf", "Floor"]), [x.name], x.shape)


def binary(graph: Graph) -> None:
    if not (x := graph.pick(is_float)):
        return
    operator = graph.random.choice(["Add", "Sub", "Mul", "Max", "Min"])
    y = graph.pick(lambda v: v.kind == FLOAT and v.shape == x.shape)
    other = y.name if y and graph.random.random() < 0.7 else graph.constant(0.5, np.float32)
    graph.emit(operator, [x.name, other], x.shape)


def broadcast(graph: Graph) -> None:
    """With a tensor of rank one less, or one element along an axis."""
    if not (x := graph.pick(with_axes)):
        return
    axis = graph.axis(x)
    axes = graph.constant([axis])
    mean = graph.emit("ReduceMean", [x.name, axes], changed(x.shape, axis, Dim(1)), keepdims=1)
    graph.emit(graph.random.choice(["Add", "Sub"]), [x.name, mean.name], x.shape)


def compare(graph: Graph) -> None:
    if x := graph.pick(is_float):
        condition = graph.emit("Greater", [x.name, graph.constant(0, np.float32)], x.shape, BOOL)
        graph.emit("Where", [condition.name, x.name, graph.constant(-1, np.float32)], x.shape)


def reduce(graph: Graph) -> None:
    if not (x := graph.pick(with_axes)):
        return
    axes = sorted(graph.random.sample(range(x.rank), graph.random.randint(1, x.rank)))
    keep = graph.random.random() < 0.5
    operator = graph.random.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"])
    kept = tuple(Dim(1) if a in axes else d for a, d in enumerate(x.shape) if keep or a not in axes)
    if graph.random.random() < 0.5:
        axes = [a - x.rank for a in axes]
    graph.emit(operator, [x.name, graph.constant(axes)], kept, keepdims=int(keep))


def arg_extremum(graph: Graph) -> None:
    if not (x := graph.pick(with_axes)):
        return
    axis, keep = graph.axis(x), graph.random.random() < 0.5
    shape = changed(x.shape, axis, Dim(1)) if keep else (*x.shape[:axis], *x.shape[axis + 1 :])
    made = graph.emit(
        graph.random.choice(["ArgMax", "ArgMin"]),
        [x.name],
        shape,
        INT,
        axis=axis,
        keepdims=int(keep),
        select_last_index=int(graph.random.random() < 0.3),
    )
    if graph.random.random() < 0.5:
        graph.emit("Cast", [made.name], shape, to=FLOAT)


def softmax(graph: Graph) -> None:
    if x := graph.pick(with_axes):
        graph.emit(graph.random.choice(["Softmax", "LogSoftmax"]), [x.name], x.shape, axis=graph.axis(x))


def normalise(graph: Graph) -> None:
    x = graph.pick(lambda v: with_axes(v) and not v.shape[-1].is_open)
    if x:
        size = x.shape[-1].constant
        graph.emit("LayerNormalization", [x.name, graph.weight(size), graph.weight(size)], x.shape, axis=-1)


def instance_norm(graph: Graph) -> None:
    x = graph.pick(lambda v: is_float(v) and v.rank >= 3 and not v.shape[1].is_open)
    if x:
        channels = x.shape[1].constant
        names = [x.name, graph.weight(channels), graph.weight(channels)]
        graph.emit("InstanceNormalization", names, x.shape)


def concat(graph: Graph) -> None:
    if not (x := graph.pick(with_axes)):
        return
    axis = graph.axis(x)

    def fits(v: Tensor) -> bool:
        return v.kind == FLOAT and v.rank == x.rank and changed(v.shape, axis, Dim(0)) == changed(x.shape, axis, Dim(0))

    parts = [x, *(graph.pick(fits) or x for _ in range(graph.random.randint(1, 2)))]
    graph.random.shuffle(parts)
    total = Dim(0)
    for part in parts:
        total = total + part.shape[axis]
    if total.n + total.m <= 4:
        graph.emit("Concat", [p.name for p in parts], changed(x.shape, axis, total), axis=axis)


def pad(graph: Graph) -> None:
    if not (x := graph.pick(with_axes)):
        return
    axis = graph.axis(x)
    mode = graph.random.choice(["constant", "constant", "edge", "reflect"])
    most = min(2, graph.least_of(x.shape[axis]) - 1) if mode == "reflect" else 2
    if most < 0 or (mode == "edge" and graph.least_of(x.shape[axis]) < 1):
        return
    before, after = graph.random.randint(0, most), graph.random.randint(0, most)
    pads = [0] * (2 * x.rank)
    pads[axis], pads[x.rank + axis] = before, after
    shape = changed(x.shape, axis, x.shape[axis] + Dim(before + after))
    graph.emit("Pad", [x.name, graph.constant(pads)], shape, mode=mode)


def cut(graph: Graph) -> None:
    """Slices from the front and from the end, and reversed."""
    if not (x := graph.pick(with_axes)):
        return
    axis = graph.axis(x)
    size, least = x.shape[axis], graph.least_of(x.shape[axis])
    kinds = {
        "reversed": (-1, -FAR, -1, size),
        "all but first": (1, FAR, 1, size + Dim(-1)),
        "all but last": (0, -1, 1, size + Dim(-1)),
        "last": (-1, FAR, 1, Dim(1)),
        "first": (0, 1, 1, Dim(1)),
        "reversed but last": (-2, -FAR, -1, size + Dim(-1)),
    }
    start, end, step, result = kinds[graph.random.choice(list(kinds))]
    if least >= 1:
        names = [graph.constant([v]) for v in (start, end, axis, step)]
        graph.emit("Slice", [x.name, *names], changed(x.shape, axis, result))


def split(graph: Graph) -> None:
    """In two, of which the first has one element, or in equal parts of a fixed axis."""
    x = graph.pick(lambda v: with_axes(v) and any(not d.is_open and d.constant >= 2 for d in v.shape))
    if not x:
        return
    axis = next(a for a, d in enumerate(x.shape) if not d.is_open and d.constant >= 2)
    size = x.shape[axis].constant
    sizes = graph.random.choice([[1, size - 1], [0, size]])
    names = [f"v{len(graph.nodes)}a", f"v{len(graph.nodes)}b"]
    graph.nodes.append(
        helper.make_node("Split", [x.name, graph.constant(sizes)], names, axis=axis, name=f"Split_{names[0]}")
    )
    graph.used.add(x.name)
    graph.values += [Tensor(n, changed(x.shape, axis, Dim(s))) for n, s in zip(names, sizes, strict=True)]


def flatten(graph: Graph) -> None:
    """To one or two axes, of which at most one is open."""
    if not (x := graph.pick(with_axes)):
        return
    axis = next((a for a, d in enumerate(x.shape) if d.is_open), 0)
    if sum(d.is_open for d in x.shape) > 1:
        return
    total = x.shape[axis]
    for a, d in enumerate(x.shape):
        total = total.times(d.constant) if a != axis else total
    if (
        graph.random.random() < 0.5
        or graph.least_of(total) == 0
        or axis != 0
        or x.rank < 2
        or x.shape[-1].constant == 0
    ):
        graph.emit("Reshape", [x.name, graph.constant([-1])], (total,))
    else:
        last = x.shape[-1].constant
        rest = x.shape[0]
        for d in x.shape[1:-1]:
            rest = rest.times(d.constant)
        graph.emit("Reshape", [x.name, graph.constant([-1, last])], (rest, Dim(last)))


def merge(graph: Graph) -> None:
    """Open axes joined with their neighbours by 0 and -1."""
    x = graph.pick(lambda v: is_float(v) and v.rank == 3 and not v.shape[2].is_open and v.shape[2].constant > 0)
    if x and sum(d.is_open for d in x.shape[1:]) <= 1 and graph.least_of(x.shape[0]) > 0:
        graph.emit("Reshape", [x.name, graph.constant([0, -1])], (x.shape[0], x.shape[1].times(x.shape[2].constant)))


def transpose(graph: Graph) -> None:
    x = graph.pick(lambda v: is_float(v) and v.rank >= 2)
    if x:
        perm = graph.random.sample(range(x.rank), x.rank)
        graph.emit("Transpose", [x.name], tuple(x.shape[p] for p in perm), perm=perm)


def unsqueeze(graph: Graph) -> None:
    x = graph.pick(lambda v: is_float(v) and v.rank <= 3)
    if x:
        axis = graph.random.randint(0, x.rank)
        shape = (*x.shape[:axis], Dim(1), *x.shape[axis:])
        graph.emit("Unsqueeze", [x.name, graph.constant([axis])], shape)


def expand(graph: Graph) -> None:
    """One element along an axis, again and again: a number of times, or as the shape of another tensor says."""
    x = graph.pick(lambda v: with_axes(v) and Dim(1) in v.shape)
    if not x:
        return
    axis = x.shape.index(Dim(1))
    other = graph.pick(lambda v: v.rank == x.rank and changed(v.shape, axis, Dim(1)) == x.shape)
    if other and other != x:
        wanted = graph.emit("Shape", [other.name], (Dim(x.rank),), INT)
        graph.emit("Expand", [x.name, wanted.name], other.shape)
    else:
        sizes = [3 if a == axis else 1 for a in range(x.rank)]
        graph.emit("Expand", [x.name, graph.constant(sizes)], changed(x.shape, axis, Dim(3)))


def tile(graph: Graph) -> None:
    if x := graph.pick(with_axes):
        axis = graph.axis(x)
        if x.shape[axis].n + x.shape[axis].m <= 2:
            counts = [2 if a == axis else 1 for a in range(x.rank)]
            graph.emit("Tile", [x.name, graph.constant(counts)], changed(x.shape, axis, x.shape[axis].times(2)))


def gather(graph: Graph) -> None:
    """One place or several, counted from the front or from the end."""
    if not (x := graph.pick(with_axes)):
        return
    axis = graph.axis(x)
    least = graph.least_of(x.shape[axis])
    if least >= 1:
        place = graph.random.choice([0, -1, least - 1])
        several = graph.random.random() < 0.5
        index = graph.constant([place, 0] if several else place)
        kept = changed(x.shape, axis, Dim(2)) if several else (*x.shape[:axis], *x.shape[axis + 1 :])
        graph.emit("Gather", [x.name, index], kept, axis=axis)


def gather_best(graph: Graph) -> None:
    """The element at the place that ArgMax gives."""
    x = graph.pick(lambda v: with_axes(v) and all(graph.least_of(d) > 0 for d in v.shape))
    if x:
        axis = graph.axis(x)
        shape = changed(x.shape, axis, Dim(1))
        best = graph.emit("ArgMax", [x.name], shape, INT, axis=axis, keepdims=1)
        graph.emit("GatherElements", [x.name, best.name], shape, axis=axis)


def shape(graph: Graph) -> None:
    """As an output, or as a number that others compute with."""
    if not (x := graph.pick(with_axes)):
        return
    axis = graph.axis(x)
    match graph.random.choice(["shape", "size", "number"]):
        case "shape":
            graph.emit("Shape", [x.name], (Dim(x.rank),), INT)
        case "size":
            graph.emit("Size", [x.name], (), INT)
        case _:
            sizes = graph.emit("Shape", [x.name], (Dim(1),), INT, start=axis, end=axis + 1)
            number = graph.emit("Cast", [sizes.name], (Dim(1),), to=FLOAT)
            graph.emit(graph.random.choice(["Mul", "Add"]), [x.name, number.name], x.shape)


def filled(graph: Graph) -> None:
    """A tensor of ones as large as another."""
    if x := graph.pick(with_axes):
        wanted = graph.emit("Shape", [x.name], (Dim(x.rank),), INT)
        graph.emit("ConstantOfShape", [wanted.name], x.shape)


def count_up(graph: Graph) -> None:
    """The numbers of the places along an axis."""
    if x := graph.pick(with_axes):
        axis = graph.axis(x)
        size = graph.emit("Shape", [x.name], (Dim(1),), INT, start=axis, end=axis + 1)
        number = graph.emit("Squeeze", [size.name], (), INT)
        places = graph.emit("Range", [graph.constant(0), number.name, graph.constant(1)], (x.shape[axis],), INT)
        graph.emit("Cast", [places.name], (x.shape[axis],), to=FLOAT)


def cumulate(graph: Graph) -> None:
    if x := graph.pick(with_axes):
        reverse, exclusive = (int(graph.random.random() < 0.3) for _ in range(2))
        names = [x.name, graph.constant(graph.axis(x))]
        graph.emit("CumSum", names, x.shape, reverse=reverse, exclusive=exclusive)


def product(graph: Graph) -> None:
    """With a matrix of weights, or with itself transposed."""
    x = graph.pick(lambda v: is_float(v) and v.rank >= 2)
    if not x:
        return
    if not x.shape[-1].is_open and x.shape[-1].constant > 0 and graph.random.random() < 0.6:
        weight = graph.weight(x.shape[-1].constant, 5)
        graph.emit("MatMul", [x.name, weight], (*x.shape[:-1], Dim(5)))
        return
    perm = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    turned = graph.emit("Transpose", [x.name], tuple(x.shape[p] for p in perm), perm=perm)
    graph.emit("MatMul", [x.name, turned.name], (*x.shape[:-1], x.shape[-2]))


def convolve(graph: Graph) -> None:
    """Of one or two spatial axes, open or not, as wide as it was."""
    x = graph.pick(lambda v: is_float(v) and v.rank in (3, 4) and not v.shape[1].is_open and v.shape[1].constant > 0)
    if x:
        spatial = x.rank - 2
        weight = graph.weight(4, x.shape[1].constant, *[3] * spatial)
        shape = (x.shape[0], Dim(4), *x.shape[2:])
        graph.emit("Conv", [x.name, weight], shape, pads=[1] * (2 * spatial))


def pool(graph: Graph) -> None:
    x = graph.pick(lambda v: is_float(v) and v.rank in (3, 4) and all(graph.least_of(d) >= 1 for d in v.shape))
    if not x:
        return
    spatial = x.rank - 2
    operator = graph.random.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
    if operator.startswith("Global"):
        graph.emit(operator, [x.name], (*x.shape[:2], *[Dim(1)] * spatial))
    else:
        graph.emit(operator, [x.name], x.shape, kernel_shape=[3] * spatial, pads=[1] * (2 * spatial))


def image_layers(graph: Graph) -> None:
    """Strided and padded convolutions, poolings and their ends over an image: its sizes are quotients of open ones."""
    some = graph.random.choice
    x = graph.input((some([Dim(1), N]), some([Dim(1), Dim(3), Dim(4)]), some([Dim(5), M]), M))
    name, channels = x.name, x.shape[1].constant
    for _ in range(graph.random.randint(2, 4)):
        stride, taps = graph.random.choice([1, 2, 2]), graph.random.choice([1, 2, 3])
        window = {"kernel_shape": [taps] * 2, "strides": [stride] * 2, "pads": [taps - 1] * 4}
        if graph.random.random() < 0.5:
            outputs = graph.random.randint(1, 4)
            name = graph.emit("Conv", [name, graph.weight(outputs, channels, taps, taps)], (), HIDDEN, **window).name
            channels = outputs
        else:
            kind, mode = graph.random.choice(["MaxPool", "AveragePool"]), graph.random.randint(0, 1)
            window["pads"] = [taps // 2] * 4
            name = graph.emit(kind, [name], (), HIDDEN, ceil_mode=mode, **window).name
        if graph.random.random() < 0.5:
            name = graph.emit("Relu", [name], (), HIDDEN).name
    end = graph.random.choice(["GlobalAveragePool", "GlobalMaxPool", "Softmax", ""])
    if end:
        graph.emit(end, [name], (), HIDDEN)


def recurrence(graph: Graph) -> None:
    """A recurrent layer over an axis in front of a batch."""
    x = graph.input((N, graph.random.choice([Dim(1), Dim(2), M]), Dim(graph.random.randint(1, 4))))
    kind, gates = graph.random.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    weights = [graph.weight(1, gates * 3, x.shape[2].constant), graph.weight(1, gates * 3, 3)]
    graph.emit(kind, [x.name, *weights], (), HIDDEN, hidden_size=3)


def enlarge(graph: Graph) -> None:
    x = graph.pick(lambda v: is_float(v) and v.rank in (3, 4) and all(d.n + d.m <= 1 for d in v.shape[2:]))
    if x and all(graph.least_of(d) >= 1 for d in x.shape):
        scales = graph.constant([1, 1, *[2] * (x.rank - 2)], np.float32)
        shape = (*x.shape[:2], *(d.times(2) for d in x.shape[2:]))
        graph.emit(
            "Resize",
            [x.name, "", scales],
            shape,
            mode=graph.random.choice(["nearest", "linear"]),
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )


def scan(graph: Graph) -> None:
    """A running sum along the first axis."""
    x = graph.pick(lambda v: is_float(v) and v.rank >= 2 and graph.least_of(v.shape[0]) >= 1)
    if not x:
        return
    start = graph.emit("ReduceSum", [x.name, graph.constant([0])], x.shape[1:], keepdims=0)
    last, rows = f"v{len(graph.nodes)}a", f"v{len(graph.nodes)}b"
    graph.nodes.append(
        helper.make_node(
            "Scan", [start.name, x.name], [last, rows], name=f"Scan_{last}", body=_step(), num_scan_inputs=1
        )
    )
    graph.used.update({start.name, x.name})
    graph.values += [Tensor(last, x.shape[1:]), Tensor(rows, x.shape)]


def _step() -> GraphProto:
    def info(name: str) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, FLOAT, None)

    nodes = [
        helper.make_node("Add", ["state", "row"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["next"]),
        helper.make_node("Identity", ["next"], ["out"]),
    ]
    return helper.make_graph(nodes, "step", [info("state"), info("row")], [info("next"), info("out")])


OPERATORS: tuple[Callable[[Graph], None], ...] = (
    *(pointwise, binary, broadcast, compare, reduce, arg_extremum, softmax, normalise, instance_norm, concat, pad, cut),
    *(split, flatten, merge, transpose, unsqueeze, expand, tile, gather, gather_best, shape, filled, count_up),
    *(cumulate, product, convolve, pool, enlarge, scan),
)
LAYERS: tuple[Callable[[Graph], None], ...] = (image_layers, recurrence)
"""What networks of images and sequences are made of; each is several nodes."""
