"""Random graphs with random layouts on random meshes: what the ranks compute together is what one computes.

    python -m tests.unit.parallel.random_partitions 300

draws so many and runs them in the interpreter with all ranks; `--mpi` compiles each and runs all by mpirun too.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.arrays import Array
from msc.dialects.ranks import run_ranks
from msc.driver.passes.registry import new_context
from msc.interp import evaluate
from msc.ir.entry import entries
from msc.ir.typed import shape
from msc.parallel.layouts import Layout
from msc.parallel.marks import argument_layouts, mesh_of, result_layouts
from msc.parallel.mesh import Mesh
from msc.parallel.partition import Partition
from msc.parallel.propagate_layouts import PropagateLayouts
from tests.unit.parallel.programs import module_from, mpirun

MESHES = ["dp=2", "dp=4", "dp=2,tp=2", "dp=2,tp=4", "a=2,b=2,c=2"]
Shape = tuple[int, ...]


@dataclass
class Graph:
    """A program in text that grows by one operation at a time."""

    draw: random.Random
    mesh: Mesh
    arguments: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    values: list[tuple[str, Shape]] = field(default_factory=list[tuple[str, Shape]])

    def layout(self, shape: Shape) -> Layout:
        """Some layout that divides a shape."""
        cuts: list[list[str]] = [[] for _ in shape]
        for axis in self.draw.sample(self.mesh.names, len(self.mesh.names)):
            d = self.draw.randrange(2 * len(shape)) if shape else 0
            if d < len(shape) and shape[d] % self.mesh.size_of(*cuts[d], axis) == 0:
                cuts[d].append(axis)
        return Layout(self.mesh, tuple(map(tuple, cuts)))

    def argument(self, shape: Shape) -> str:
        name = f"%a{len(self.arguments)}"
        sizes = "x".join(map(str, (*shape, "f64")))
        said = f', ms.sharding = "{self.layout(shape)}"' if self.draw.random() < 0.7 else ""
        self.arguments.append(f'{name}: tensor<{sizes}> {{ms.name = "{name[1:]}"{said}}}')
        return name

    def emit(self, text: str, shape: Shape) -> None:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        self.values.append((name, shape))

    def grow(self) -> None:
        """One operation more, on a value that there is."""
        draw = self.draw
        name, shape = draw.choice(self.values[-3:])
        axis = draw.randrange(len(shape)) if shape else 0
        kinds = ["unary", "binary", "bias"]
        kinds += ["reduce", "softmax", "mean", "transpose", "slice", "concat", "norm", "pad", "cumsum"] if shape else []
        kinds += ["reshape"] if math.prod(shape) > 1 else []
        kinds += ["matmul", "matmul", "dense"] if len(shape) == 2 else []
        kinds += ["batch_matmul"] if len(shape) == 3 else []
        kinds += ["conv"] if len(shape) == 4 and min(shape[2:]) >= 2 else []
        match draw.choice(kinds):
            case "unary":
                self.emit(f"ms.{draw.choice(['relu', 'tanh', 'neg', 'sigmoid', 'gelu', 'square'])} {name}", shape)
            case "binary":
                same = [other for other, s in self.values if s == shape]
                self.emit(f"ms.{draw.choice(['add', 'mul', 'sub', 'maximum'])} {name}, {draw.choice(same)}", shape)
            case "bias":
                bias = self.argument(shape[draw.randrange(len(shape)) :] if shape else ())
                self.emit(f"ms.add {name}, {bias}", shape)
            case "reduce":
                kept = draw.random() < 0.5
                after = (*shape[:axis], *((1,) if kept else ()), *shape[axis + 1 :])
                kind = draw.choice(["sum", "max", "min"])
                self.emit(f"ms.reduce_{kind} {name} {{axis = [{axis}], keep_dims = {str(kept).lower()}}}", after)
            case "mean":
                after = (*shape[:axis], *shape[axis + 1 :])
                self.emit(f"ms.reduce_mean {name} {{axis = [{axis}]}}", after)
            case "softmax":
                self.emit(f"ms.softmax {name} {{axis = {axis}}}", shape)
            case "cumsum":
                self.emit(f"ms.cumsum {name} {{axis = {axis}}}", shape)
            case "transpose":
                perm = draw.sample(range(len(shape)), len(shape))
                self.emit(f"ms.transpose {name} {{perm = {perm}}}", tuple(shape[p] for p in perm))
            case "slice":
                if shape[axis] % 2 == 0:
                    after = (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])
                    begin = [shape[axis] // 4 if d == axis else 0 for d in range(len(shape))]
                    end = [b + n for b, n in zip(begin, after, strict=True)]
                    self.emit(f"ms.slice {name} {{begin = {begin}, end = {end}}}", after)
            case "concat":
                self.emit(
                    f"ms.concat {name}, {name} {{axis = {axis}}}", (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
                )
            case "pad":
                pad = [1 if d == axis else 0 for d in range(len(shape))] * 2
                self.emit(f"ms.pad {name} {{pad = {pad}}}", (*shape[:axis], shape[axis] + 2, *shape[axis + 1 :]))
            case "norm":
                gamma, beta = self.argument(shape[-1:]), self.argument(shape[-1:])
                self.emit(f"ms.layer_norm {name}, {gamma}, {beta}", shape)
            case "reshape":
                total, after = math.prod(shape), list[int]()
                while total > 1 and len(after) < 3:
                    size = draw.choice([n for n in (2, 4, 8, 3, 5, 7, total) if total % n == 0])
                    after.append(size)
                    total //= size
                after.append(total)
                self.emit(f"ms.reshape {name} {{shape = {after}}}", tuple(after))
            case "matmul":
                n = draw.choice([4, 8])
                self.emit(f"ms.matmul {name}, {self.argument((shape[1], n))}{self.mark(shape, n)}", (shape[0], n))
            case "dense":
                n = draw.choice([4, 8])
                weight, bias = self.argument((n, shape[1])), self.argument((n,))
                self.emit(f"ms.dense {name}, {weight}, {bias}", (shape[0], n))
            case "batch_matmul":
                n = draw.choice([2, 4])
                other = self.argument((*shape[:-2], shape[-1], n))
                self.emit(f"ms.batch_matmul {name}, {other}", (*shape[:-1], n))
            case _:
                kernel = self.argument((4, shape[1], 2, 2))
                self.emit(f'ms.conv2d {name}, {kernel} {{pad_mode = "same"}}', (shape[0], 4, *shape[2:]))

    def mark(self, shape: Shape, n: int) -> str:
        if self.draw.random() < 0.5:
            return ""
        rows, inner, columns = self.layout((shape[0], shape[1], n)).cuts
        texts = [".".join(cut) or "_" for cut in (rows, inner, columns)]
        return f' {{ms.shard = "[{texts[0]}, {texts[1]}], [{texts[1]}, {texts[2]}]"}}'

    def text(self) -> str:
        results = self.values[-2:]
        types = ", ".join(f"tensor<{'x'.join(map(str, (*shape, 'f64')))}>" for _, shape in results)
        return (
            f'builtin.module attributes {{ms.mesh = "{self.mesh}"}} {{\n'
            f"  func.func @main({', '.join(self.arguments)}) -> ({types}) {{\n" + "\n".join(self.lines) + "\n"
            f"    func.return {', '.join(name for name, _ in results)} : {types}\n  }}\n}}\n"
        )


def random_graph(seed: int) -> str:
    """A program of three to eight operations."""
    draw = random.Random(seed)
    graph = Graph(draw, Mesh.parse(draw.choice(MESHES)))
    shape = tuple(draw.choice([2, 4, 8, 8]) for _ in range(draw.randint(1, 4)))
    graph.values.append((graph.argument(shape), shape))
    for _ in range(draw.randint(3, 8)):
        graph.grow()
    return graph.text()


def inputs_of(text: str) -> list[Array]:
    (function,) = entries(module_from(text))
    draw = np.random.default_rng(0)
    return [draw.uniform(-1, 1, shape(argument)) for argument in function.body.block.args]


def check(text: str) -> None:
    """Partition a program, with whole arguments and with the ranks' parts, and run it with all ranks."""
    inputs = inputs_of(text)
    expected = evaluate(module_from(text), inputs, {})
    laid = module_from(text)
    PropagateLayouts().apply(new_context(), laid)
    mesh = mesh_of(laid)
    assert mesh is not None
    (function,) = entries(laid)
    arguments = [layout or Layout.whole(mesh, 0) for layout in argument_layouts(function, mesh, {})]
    results = result_layouts(function, mesh, arguments)
    given = [parts(inputs, rank, arguments) for rank in range(mesh.size)]
    wanted = [parts(expected, rank, results) for rank in range(mesh.size)]
    whole = laid.clone()
    Partition(local=True).apply(new_context(), laid)
    Partition().apply(new_context(), whole)
    compare(laid, given, wanted)
    compare(whole, [inputs] * mesh.size, [expected] * mesh.size)


def parts(values: Sequence[Array], rank: int, layouts: Sequence[Layout]) -> list[Array]:
    return [value[layout.slices(value.shape, rank)] for value, layout in zip(values, layouts, strict=True)]


def compare(module: ModuleOp, inputs: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]) -> None:
    """Whether each rank gets what is expected of it."""
    module.verify()
    found = run_ranks(len(inputs), lambda rank: evaluate(module, inputs[rank], {}))
    for results, wanted in zip(found, expected, strict=True):
        for a, b in zip(results, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


RUN = """
import sys
import mpi4py.MPI
import numpy as np
import msc
for folder in sys.argv[1:]:
    with np.load(f"{folder}/x.npz") as file:
        inputs = [file[name] for name in file.files]
    found = msc.load(f"{folder}/m.so")(*inputs)
    with np.load(f"{folder}/y.npz") as file:
        for a, name in zip(found if isinstance(found, tuple) else (found,), file.files, strict=True):
            np.testing.assert_allclose(a, file[name], rtol=1e-9, atol=1e-9, err_msg=folder)
"""


def compile_for_mpi(text: str, folder: Path) -> int:
    """Compile a program, and write what it is given and what it gives; how many ranks it has."""
    import msc

    folder.mkdir(exist_ok=True)
    inputs = inputs_of(text)
    np.savez(folder / "x.npz", *inputs)
    np.savez(folder / "y.npz", *evaluate(module_from(text), inputs, {}))
    (folder / "m.mir").write_text(text, "utf-8")
    msc.compile(folder / "m.mir", use_cache=False).save(folder / "m.so", force=True)
    mesh = mesh_of(module_from(text))
    return mesh.size if mesh else 1


def check_mpi(ranks: int, names: Sequence[str], folder: Path) -> None:
    """Run compiled programs of so many ranks by one mpirun."""
    (folder / "run.py").write_text(RUN, "utf-8")
    ran = mpirun(ranks, [sys.executable, "run.py", *names], folder, seconds=60 + 5 * len(names))
    assert ran.returncode == 0, ran.stderr


def main() -> None:
    count, mpi = int(sys.argv[1]), "--mpi" in sys.argv
    start = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 0
    with tempfile.TemporaryDirectory() as folder:
        programs: dict[int, list[str]] = {}
        for seed in range(start, start + count):
            text = random_graph(seed)
            try:
                check(text)
                if mpi:
                    ranks = compile_for_mpi(text, Path(folder) / str(seed))
                    programs.setdefault(ranks, []).append(str(seed))
            except BaseException:
                sys.stderr.write(f"seed {seed}\n{text}\n")
                raise
        for ranks, names in sorted(programs.items()):
            check_mpi(ranks, names, Path(folder))
            sys.stdout.write(f"{len(names)} programs on {ranks} ranks over MPI\n")
    sys.stdout.write(f"{count} programs\n")


if __name__ == "__main__":
    main()
