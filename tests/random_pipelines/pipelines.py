"""A pipeline of random stages, and the rows that it must give.

The values of a row are one number, `k`, so that a row is known by it. Functions of users reuse their buffers, change
what they are given, give what they hold, and keep what they saw; consumers write into rows. The model is a list of
numbers: no stage of it shares anything.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import msc
import msc.dataset as ds
from msc.dataset import transforms

SHAPE = (2, 3)


class Fault(AssertionError):
    """A pipeline whose rows, or whose users' arrays, are not what they must be."""


class Pipeline:
    """A data set, the numbers of its rows, and users' arrays with what must still be in them."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.notes: list[str] = []
        self.theirs: list[tuple[Any, Any]] = []
        self.rows = [float(k) for k in range(self.draw.randint(3, 9))]
        self.data = self._source()
        for _ in range(self.draw.randint(1, 4)):
            self.draw.choice(STAGES)(self)

    def note(self, text: str) -> None:
        """What a failure shows."""
        self.notes.append(text)

    def held(self, array: Any) -> Any:
        """An array of a user's, which nobody else may change."""
        self.theirs.append((array, np.array(array)))
        return array

    def _source(self) -> ds.Dataset:
        kind = self.draw.choice(["slices", "tuple", "list", "tensor", "memmap", "reused", "object", "tensors"])
        self.note(kind)
        array = np.stack([np.full(SHAPE, k, "f4") for k in self.rows])
        slices: dict[str, Any] = {
            "slices": {"x": self.held(array)},
            "tuple": (self.held(array),),
            "list": list(map(self.held, array)),
        }
        slices["tensor"] = msc.Tensor.from_numpy(self.held(array))
        if kind in slices:
            return ds.NumpySlicesDataset(slices[kind], ["x"], shuffle=False)
        if kind == "memmap":
            return ds.NumpySlicesDataset({"x": self.held(array.view(np.memmap))}, shuffle=False)
        if kind == "object":
            return ds.GeneratorDataset(list(map(self.held, array)), ["x"], shuffle=False)
        buffer, numbers = np.zeros(SHAPE, "f4"), list(self.rows)
        shared = msc.Tensor.from_numpy(buffer)

        def reused() -> Iterator[Any]:
            for k in numbers:
                buffer[:] = k
                yield (buffer if kind == "reused" else shared,)

        return ds.GeneratorDataset(reused, ["x"])

    def check(self) -> None:
        """Read some epochs, write into what comes, and compare. Raises Fault."""
        as_arrays, reads = self.draw.random() < 0.7, list[Any]()
        for _ in range(2):
            found = list[Any]()
            for row in self.data.create_tuple_iterator(num_epochs=1, output_numpy=as_arrays):
                found.append(row[0] if as_arrays else row[0].asnumpy())
                reads.append(np.array(found[-1]))
                found[-1][...] = -1000
            if not all((row == -1000).all() for row in found):
                raise Fault("a row was written by somebody else: " + ", ".join(self.notes))
        values = [row.reshape(-1, *SHAPE) for row in reads]
        flat = [float(item[0, 0]) if (item == item[0, 0]).all() else None for row in values for item in row]
        if flat != self.rows * 2:
            raise Fault(f"{flat} in place of {self.rows * 2}: " + ", ".join(self.notes))
        for array, before in self.theirs:
            if not np.array_equal(array, before):
                raise Fault("a user's array was changed: " + ", ".join(self.notes))


def _map(pipeline: Pipeline, name: str, function: Callable[[Any], Any], change: Callable[[float], float]) -> None:
    workers = pipeline.draw.randint(1, 3)
    if name in ("buffer", "keeping"):  # What several threads write at once is nobody's row.
        workers = 1
    pipeline.note(f"map {name} with {workers}")
    pipeline.data = pipeline.data.map(function, "x", num_parallel_workers=workers)
    pipeline.rows = [change(k) for k in pipeline.rows]


def in_place(pipeline: Pipeline) -> None:
    """A function that changes what it is given."""

    def double(x: Any) -> Any:
        x *= 2
        return x

    _map(pipeline, "in place", double, lambda k: k * 2)


def buffer(pipeline: Pipeline) -> None:
    """A function that gives one array each time."""
    kept = np.zeros(SHAPE, "f4")

    def fill(x: Any) -> Any:
        np.add(x.reshape(-1)[0], 1, out=kept)
        return kept

    if pipeline.data.get_batch_size() == 1 and pipeline.data.output_shapes()[0] == list(SHAPE):
        _map(pipeline, "buffer", fill, lambda k: k + 1)


def keeping(pipeline: Pipeline) -> None:
    """A function that keeps what it gives, and changes what it gave before."""
    seen: list[Any] = []

    def keep(x: Any) -> Any:
        seen.append(x)
        if len(seen) > 1:
            seen[-2][...] = -5
        return x[...]

    _map(pipeline, "keeping", keep, lambda k: k)


def views(pipeline: Pipeline) -> None:
    """Transforms that give views."""
    pipeline.note("views")
    pipeline.data = pipeline.data.map([lambda x: x[..., ::-1], transforms.Slice(...)], "x")


def filtered(pipeline: Pipeline) -> None:
    """A predicate that changes what it is asked of."""

    def changes(x: Any) -> bool:
        x[...] = -7
        return True

    pipeline.note("filter")
    pipeline.data = pipeline.data.filter(changes, "x")


def repeated(pipeline: Pipeline) -> None:
    """The rows twice."""
    pipeline.note("repeat")
    pipeline.data, pipeline.rows = pipeline.data.repeat(2), pipeline.rows * 2


def joined(pipeline: Pipeline) -> None:
    """The data set after itself."""
    pipeline.note("concat")
    pipeline.data, pipeline.rows = pipeline.data + pipeline.data, pipeline.rows * 2


def zipped(pipeline: Pipeline) -> None:
    """The data set beside itself; both columns are changed."""

    def both(x: Any, y: Any) -> Any:
        y *= 3
        x += y
        return x

    pipeline.note("zip")
    pipeline.data = pipeline.data.zip(pipeline.data.rename("x", "y")).map(both, ["x", "y"], ["x"])
    pipeline.rows = [k * 4 for k in pipeline.rows]


def doubled(pipeline: Pipeline) -> None:
    """A function that gives one array for two columns."""

    def change(x: Any, y: Any) -> Any:
        x += 1
        return x + y

    pipeline.note("one array in two columns")
    pipeline.data = pipeline.data.map(lambda x: (x, x), ["x"], ["x", "y"]).map(change, ["x", "y"], ["x"])
    pipeline.rows = [k * 2 + 1 for k in pipeline.rows]


def batched(pipeline: Pipeline) -> None:
    """Batches of one row or more, which are stacked, padded, or made by a function that changes its rows."""
    if pipeline.data.get_batch_size() > 1 or pipeline.data.output_shapes()[0] != list(SHAPE):
        return
    size, kind = pipeline.draw.choice([1, 1, 2, 3]), pipeline.draw.choice(["stack", "pad", "map", "map to a buffer"])
    pipeline.note(f"batch {kind} of {size}")
    kept = np.zeros((size, *SHAPE), "f4")

    def change(rows: Any, info: Any) -> Any:
        for row in rows:
            row += 1
        return (rows,)

    def to_buffer(rows: Any, info: Any) -> Any:
        np.add(np.stack(rows), 1, out=kept[: len(rows)])
        return (kept[: len(rows)],)

    if kind == "stack":
        pipeline.data = pipeline.data.batch(size)
    elif kind == "pad":
        pipeline.data = pipeline.data.padded_batch(size)
    else:
        pipeline.data = pipeline.data.batch(size, per_batch_map=change if kind == "map" else to_buffer)
        pipeline.rows = [k + 1 for k in pipeline.rows]


def projected(pipeline: Pipeline) -> None:
    """Other names, and parts."""
    pipeline.note("skip and rename")
    if pipeline.data.get_batch_size() == 1 and pipeline.data.output_shapes()[0] == list(SHAPE):
        pipeline.data, pipeline.rows = pipeline.data.skip(1), pipeline.rows[1:]
    pipeline.data = pipeline.data.rename("x", "z").project(["z"]).rename("z", "x")


STAGES = [in_place, in_place, buffer, keeping, views, filtered, repeated, joined, zipped, doubled, batched, projected]
