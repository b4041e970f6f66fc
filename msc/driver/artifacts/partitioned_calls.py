"""One rank's program of a graph that a call captured: laid out, partitioned and compiled."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Operation

from msc.analysis.bytes import bytes_of
from msc.dialects.ms.attributes import MS_MESH, MS_SHARD, MS_SHARDING, MS_STRATEGY
from msc.dialects.ranks import current_ranks
from msc.driver.passes.registry import new_context
from msc.frontend.execution import Program, program_of
from msc.frontend.modes import Wishes
from msc.frontend.parallel import get_auto_parallel_context, least_shared, mesh_text, optimizer_level
from msc.frontend.reader.updates import updates_of
from msc.frontend.sharing import Scattered, SharedCall, Slices
from msc.ir.entry import entries
from msc.ir.locations import source_location
from msc.ir.typed import shape
from msc.parallel.layouts import Layout
from msc.parallel.marks import argument_layouts, mark_text, parameter_layouts, result_layouts
from msc.parallel.mesh import Mesh
from msc.parallel.partition import Partition
from msc.parallel.propagate_layouts import PropagateLayouts, wanted_layouts
from msc.parallel.rules import rule_of
from msc.parallel.usual_marks import has_marks, mark_as_usual
from msc.planner.model_plan import mesh_of
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, MscError


def rank_program(call: SharedCall, wishes: Wishes) -> Program:
    """From a rank's rows and its parts of parameters to its results; parameters that are cut come back `Scattered`."""
    captured = call.captured
    module = captured.graph.finish(captured.outputs)
    weights = captured.graph.weights()
    mesh = _mesh_of(module)
    laid = _Lying(call, module, mesh)
    shapes = [shape(t) for t in laid.result_types]
    laid.mark()
    context = new_context()
    PropagateLayouts().apply(context, module)
    known = [layout or Layout.whole(mesh, 0) for layout in argument_layouts(laid.function, mesh, {})]
    results = result_layouts(laid.function, mesh, known)
    Partition(local=True).apply(context, module)
    del module.attributes[MS_MESH]
    own = {name: _own(weights[name], layout) for name, layout in parameter_layouts(module, mesh).items()}
    program = program_of(module, {**weights, **own}, wishes)
    is_local = [k in call.examples and not get_auto_parallel_context("full_batch") for k in range(len(known))]
    updated = {update.result for update in laid.updates}

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        given = [
            array if local else _part(array, layout)
            for array, layout, local in zip(arrays, known, is_local, strict=True)
        ]
        found = program(given)
        return [
            Scattered(whole, np.array(array), _places(layout, whole)) if k in updated and layout.axes else array
            for k, (array, layout, whole) in enumerate(zip(found, results, shapes, strict=True))
        ]

    return run


def _places(layout: Layout, sizes: Sequence[int]) -> list[Slices]:
    return [layout.slices(sizes, rank) for rank in range(layout.mesh.size)]


def _own(array: Array, layout: Layout) -> Array:
    return np.ascontiguousarray(array[layout.slices(array.shape, current_ranks().rank)])


def _part(value: Any, layout: Layout) -> Array:
    """The own part of an argument that is whole, or cut, maybe in another way."""
    if isinstance(value, Scattered):
        if list(value.places) == _places(layout, value.shape):
            return value.part
        value = value.gathered()
    return _own(value, layout) if layout.axes else value


def _not_cut(op: Operation, strategy: str, why: str) -> MscError:
    help = "all parts of an operation are at most the ranks, in its factors"
    return MscError(
        Diagnostic("MSC1109", f"{op.name} is not cut into {strategy}: {why}", source_location(op), help=help)
    )


def _mesh_of(module: ModuleOp) -> Mesh:
    """The mesh that was set; for numbers of parts one of the prime factors of the ranks."""
    has_numbers = any(MS_STRATEGY in op.attributes for op in module.walk())
    is_said = bool(get_auto_parallel_context("mesh"))
    return mesh_of(current_ranks().size) if has_numbers and not is_said else Mesh.parse(mesh_text())


@dataclass
class _Lying:
    """How the arguments and results of a call lie on the mesh."""

    call: SharedCall
    module: ModuleOp
    mesh: Mesh

    def __post_init__(self) -> None:
        (self.function,) = entries(self.module)
        self.updates = updates_of(self.call.captured)
        self.result_types = list(self.function.function_type.outputs.data)

    def mark(self) -> None:
        """Say how examples, parameters, states and results lie; products get the usual marks where users gave none."""
        self.module.attributes[MS_MESH] = StringAttr(str(self.mesh))
        full = get_auto_parallel_context("full_batch")
        data = ("dp",) if "dp" in self.mesh.names and full else self.mesh.names
        self._mark_products()
        given, arguments = self.call.captured.graph.inputs, self.function.body.block.args
        wanted = wanted_layouts(self.function, self.mesh)
        layouts = {k: wanted.get(a) or Layout.whole(self.mesh, len(shape(a))) for k, a in enumerate(arguments)}
        weights = {p.name: layouts[k] for k, g in enumerate(given) if (p := g.parameter) is not None}
        for update in self.updates:
            name, k = update.parameter.name, update.argument
            weight = next((w for w in weights if name.endswith("." + w)), None)
            is_same = weight is not None and weights[weight].fits(shape(arguments[k]))
            layouts[k] = self._shared(k, weights[weight] if weight is not None and is_same else layouts[k], is_same)
        for k in self.call.examples:
            layouts[k] = self._rows(len(shape(arguments[k])), data)
        rows = next((shape(arguments[k])[0] for k in self.call.examples), None)
        of_results = {u.result: layouts[u.argument] for u in self.updates}
        results = [
            of_results.get(k) or self._rows(len(sizes), data if sizes[:1] == (rows,) and not full else ())
            for k, sizes in enumerate(map(shape, self.result_types))
        ]
        self.function.arg_attrs = self._said(self.function.arg_attrs, layouts.values())
        self.function.res_attrs = self._said(self.function.res_attrs, results)

    def _mark_products(self) -> None:
        """Parameters have no names of arguments meanwhile, as in models that are read."""
        named = self.function.arg_attrs
        given = self.call.captured.graph.inputs
        self.function.arg_attrs = ArrayAttr(
            entry if given[k].parameter is None else DictionaryAttr({}) for k, entry in enumerate(named or ())
        )
        self._mark_strategies()
        if not has_marks(self.function):
            mark_as_usual(self.function, self.mesh)
        self.function.arg_attrs = named

    def _mark_strategies(self) -> None:
        """Operations that users cut into numbers of parts: axes of the mesh that make those, alike for one loop."""
        for op in self.function.walk():
            written = op.attributes.pop(MS_STRATEGY, None)
            if isinstance(written, StringAttr):
                strategy: list[list[int]] = json.loads(written.data)
                axes: dict[object, tuple[str, ...]] = {}
                layouts: list[Layout] = []
                for n, (factors, parts) in enumerate(zip(rule_of(op).operands, strategy, strict=True)):
                    for d, (factor, count) in enumerate(zip(factors, parts, strict=True)):
                        key = (n, d) if factor is None else factor
                        axes.setdefault(key, self._axes(op, count, [a for used in axes.values() for a in used]))
                    keys = [(n, d) if factor is None else factor for d, factor in enumerate(factors)]
                    layouts.append(Layout(self.mesh, tuple(axes[key] for key in keys)))
                    if layouts[-1].strategy != tuple(parts):
                        raise _not_cut(op, written.data, f"one loop runs over dimensions cut {parts} and otherwise")
                op.attributes[MS_SHARD] = mark_text(layouts)

    def _axes(self, op: Operation, count: int, used: Sequence[str]) -> tuple[str, ...]:
        """The first free axes that make so many parts."""
        free = [name for name in self.mesh.names if name not in used]
        for length in range(len(free) + 1):
            for names in itertools.combinations(free, length):
                if self.mesh.size_of(*names) == count:
                    return names
        raise _not_cut(op, str(count), f"the axes of {self.mesh} that are left do not make {count} parts")

    def _shared(self, argument: int, layout: Layout, is_state: bool) -> Layout:
        """The layout of a parameter that is updated; optimizer-parallel ranks share what each of them would have."""
        value = self.function.body.block.args[argument]
        level = optimizer_level()
        free = tuple(axis for axis in self.mesh.names if axis not in layout.axes and axis not in ("tp", "pp"))
        sizes = layout.local_shape(shape(value))
        wanted = level >= (1 if is_state else 3) and bytes_of(value) >= least_shared()
        for d, size in enumerate(sizes if wanted and free else ()):
            if size % self.mesh.size_of(*free) == 0:
                return layout.with_cuts([(*cut, *free) if k == d else cut for k, cut in enumerate(layout.cuts)])
        return layout

    def _rows(self, rank: int, axes: tuple[str, ...]) -> Layout:
        return Layout(self.mesh, (axes, *((),) * (rank - 1))) if axes else Layout.whole(self.mesh, rank)

    def _said(
        self, attributes: ArrayAttr[DictionaryAttr] | None, layouts: Iterable[Layout]
    ) -> ArrayAttr[DictionaryAttr]:
        return ArrayAttr(
            DictionaryAttr({**entry.data, MS_SHARDING: StringAttr(str(layout))})
            for entry, layout in zip(attributes or (), layouts, strict=True)
        )
