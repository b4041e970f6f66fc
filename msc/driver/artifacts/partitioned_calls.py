"""One rank's program of a graph that a call captured: laid out, partitioned and compiled."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from msc.analysis.bytes import bytes_of
from msc.dialects.arrays import tensor_dtype
from msc.dialects.ms.attributes import MS_MESH, MS_SHARD, MS_SHARDING, MS_STRATEGY
from msc.dialects.ms.structure import ParameterOp
from msc.dialects.ranks import current_ranks
from msc.driver.passes.registry import new_context
from msc.frontend.execution import Program, program_of
from msc.frontend.modes import Wishes
from msc.frontend.parallel import (
    Layout,
    Row,
    get_auto_parallel_context,
    least_shared,
    mesh_text,
    optimizer_level,
    ranks_of_a_stage,
    searches,
)
from msc.frontend.parameter import Parameter
from msc.frontend.process_group import is_first_rank
from msc.frontend.reader.updates import updates_of
from msc.frontend.sharing import Scattered, SharedCall, Slices
from msc.ir.entry import entries
from msc.ir.locations import source_location
from msc.ir.typed import shape, tensor_type
from msc.parallel.layouts import Layout as LaidOut
from msc.parallel.marks import argument_layouts, mark_text, parameter_layouts, result_layouts
from msc.parallel.mesh import Mesh
from msc.parallel.partition import Partition
from msc.parallel.propagate_layouts import PropagateLayouts, wanted_layouts
from msc.parallel.rules import rule_of
from msc.parallel.traffic import check_meetings, meetings, meetings_text, read_meetings
from msc.parallel.usual_marks import has_marks, mark_as_usual
from msc.planner.cluster import cluster_named
from msc.planner.found_marks import mark_found
from msc.planner.model_plan import mesh_of
from msc.planner.stage_programs import StagePrograms
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import write_text


def rank_program(call: SharedCall, wishes: Wishes) -> Program:
    """From a rank's rows and its parts of parameters to its results; parameters that are cut come back `Scattered`."""
    captured = call.captured
    module = captured.graph.finish(captured.outputs)
    weights = captured.graph.weights()
    frozen = captured.graph.symbols()
    parameters = [*frozen.values(), *(p for given in captured.graph.inputs if (p := given.parameter) is not None)]
    mesh = _mesh_of(module, [parameter.strategy for parameter in parameters])
    laid = _Lying(call, module, mesh)
    shapes = [shape(t) for t in laid.result_types]
    laid.mark()
    context = new_context()
    PropagateLayouts().apply(context, module)
    known = [layout or LaidOut.whole(mesh, 0) for layout in argument_layouts(laid.function, mesh, {})]
    results = result_layouts(laid.function, mesh, known)
    Partition(local=True).apply(context, module)
    del module.attributes[MS_MESH]
    own = {
        name: _own(weights[name], layout) for name, layout in parameter_layouts(module, mesh, are_parts=True).items()
    }
    stages, updates = get_auto_parallel_context("pipeline_stages"), {u.result: u.argument for u in laid.updates}
    schedule = get_auto_parallel_context("pipeline_config").get("pipeline_scheduler", "1f1b")
    pipeline = StagePrograms(module, stages, mesh.size, schedule, updates)
    arguments, own_results = pipeline.take(current_ranks().rank // mesh.size)
    _check_meetings(module)
    program = program_of(module, {**weights, **own}, wishes)
    is_local = [k in call.examples and not get_auto_parallel_context("full_batch") for k in range(len(known))]
    held = {argument: pipeline.holders[result] for result, argument in updates.items()}
    every = set(range(stages))

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        given = [
            array if local else _part(array, layout, stages, held.get(k, every))
            for k, (array, layout, local) in enumerate(zip(arrays, known, is_local, strict=True))
        ]
        found = dict(zip(own_results, program([given[k] for k in arguments]), strict=True))
        return [result(k, found.get(k)) for k in range(len(shapes))]

    def result(k: int, array: Any) -> Any:
        stages_of_it = pipeline.holders[k]
        if k not in updates or not (results[k].axes or stages_of_it != every):
            return array
        part = np.empty(0, tensor_dtype(tensor_type(laid.result_types[k]))) if array is None else np.array(array)
        return Scattered(shapes[k], part, _places(results[k], shapes[k], stages, stages_of_it))

    return run


def _check_meetings(module: ModuleOp) -> None:
    """Whether the programs of all ranks meet, which they tell each other. Raises MSC1104."""
    ranks = current_ranks()
    text = meetings_text(meetings(module, ranks.rank))
    told = ranks.exchange(range(ranks.size), "the collectives of a graph", np.frombuffer(text.encode(), np.uint8))
    check_meetings([read_meetings(each.tobytes().decode()) for each in told])


def _places(layout: LaidOut, sizes: Sequence[int], stages: int, holders: set[int]) -> list[Slices | None]:
    """Where the parts of all ranks lie; None for those of stages that do not hold the tensor."""
    own = [layout.slices(sizes, rank) for rank in range(layout.mesh.size)]
    return [place if stage in holders else None for stage in range(stages) for place in own]


def _own(array: Array, layout: LaidOut) -> Array:
    return np.ascontiguousarray(array[layout.slices(array.shape, current_ranks().rank % layout.mesh.size)])


def _part(value: Any, layout: LaidOut, stages: int, holders: set[int]) -> Array:
    """The own part of an argument that is whole, or cut, maybe in another way."""
    if isinstance(value, Scattered):
        if list(value.places) == _places(layout, value.shape, stages, holders):
            return value.part
        value = value.gathered()
    return _own(value, layout) if layout.axes else value


def _not_cut(op: Operation, strategy: str, why: str) -> MscError:
    help = "all parts of an operation are at most the ranks, in its factors"
    return MscError(
        Diagnostic("MSC1109", f"{op.name} is not cut into {strategy}: {why}", source_location(op), help=help)
    )


def _mesh_of(module: ModuleOp, plans: Iterable[Row | None]) -> Mesh:
    """The mesh that was set, or that layouts name; for numbers of parts one of the prime factors of the ranks."""
    rows = [row for op in module.walk() for row in _rows(op)]
    said = {str(Mesh.parse(text)) for text in [get_auto_parallel_context("mesh")] if text}
    said |= {row.partition(" ")[0] for row in rows if isinstance(row, str)}
    said |= {plan.mesh for plan in plans if isinstance(plan, Layout)}
    count = ranks_of_a_stage()
    if len(said) > 1 or any(Mesh.parse(text).size != count for text in said):
        message = f"layouts name the meshes {' and '.join(sorted(said))}, and a stage has {count} ranks"
        raise MscError(Diagnostic("MSC1109", message, help="all layouts of a program have one matrix, of all ranks"))
    if said:
        return Mesh.parse(said.pop())
    has_numbers = bool(rows) or any(isinstance(plan, tuple) for plan in plans)
    return mesh_of(count) if has_numbers or searches() else Mesh.parse(mesh_text())


def _rows(op: Operation) -> list[list[int] | str | None]:
    """The rows of the strategy that a user gave an operation."""
    written = op.attributes.get(MS_STRATEGY)
    return json.loads(written.data) if isinstance(written, StringAttr) else []


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
        frozen = self.call.captured.graph.symbols()
        for op in self.module.ops:
            planned = self._planned(frozen.get(op.symbol), op.type) if isinstance(op, ParameterOp) else None
            if planned is not None:
                op.attributes[MS_SHARDING] = StringAttr(str(planned))
        full = get_auto_parallel_context("full_batch")
        data = self.mesh.names if not full else ("dp",) if "dp" in self.mesh.names else ()
        self._mark_products()
        given, arguments = self.call.captured.graph.inputs, self.function.body.block.args
        wanted = wanted_layouts(self.function, self.mesh)
        layouts = {
            k: self._planned(given[k].parameter, a.type) or wanted.get(a) or LaidOut.whole(self.mesh, len(shape(a)))
            for k, a in enumerate(arguments)
        }
        weights = {p.name: layouts[k] for k, g in enumerate(given) if (p := g.parameter) is not None}
        for update in self.updates:
            name, k = update.parameter.name, update.argument
            weight = next((w for w in weights if name.endswith("." + w)), None)
            is_same = weight is not None and weights[weight].fits(shape(arguments[k]))
            layouts[k] = self._shared(k, weights[weight] if weight is not None and is_same else layouts[k], is_same)
        for k in self.call.examples:
            if not full or arguments[k] not in wanted:
                layouts[k] = self._rows(shape(arguments[k]), data)
        rows = next((shape(arguments[k])[0] for k in self.call.examples), None)
        of_results = {u.result: layouts[u.argument] for u in self.updates}
        results = [
            of_results.get(k) or self._rows(sizes, data if sizes[:1] == (rows,) and not full else ())
            for k, sizes in enumerate(map(shape, self.result_types))
        ]
        self.function.arg_attrs = self._said(self.function.arg_attrs, layouts.values())
        self.function.res_attrs = self._said(self.function.res_attrs, results)

    def _planned(self, parameter: Parameter | None, type_: Attribute) -> LaidOut | None:
        """How a plan of parameters says that one lies."""
        row = parameter.strategy if parameter is not None else None
        if row is None:
            return None
        if isinstance(row, Layout):
            return LaidOut.parse(self.mesh, str(row).partition(" ")[2])
        used: list[str] = []
        cuts: list[tuple[str, ...]] = []
        for count in row:
            cuts.append(self._axes(self.function, count, used))
            used += cuts[-1]
        found = LaidOut(self.mesh, tuple(cuts))
        found.local_shape(shape(type_))
        return found

    def _mark_products(self) -> None:
        """Parameters have no names of arguments meanwhile, as in models that are read."""
        named = self.function.arg_attrs
        given = self.call.captured.graph.inputs
        self.function.arg_attrs = ArrayAttr(
            entry if given[k].parameter is None else DictionaryAttr({}) for k, entry in enumerate(named or ())
        )
        for op in self.function.walk():
            rows = _rows(op)
            op.attributes.pop(MS_STRATEGY, None)
            if any(row is not None for row in rows):
                op.attributes[MS_SHARD] = mark_text(self._strategy(op, rows))
        if searches():
            self._search()
        elif not has_marks(self.function):
            mark_as_usual(self.function, self.mesh)
        self.function.arg_attrs = named

    def _search(self) -> None:
        """Mark what the results are computed of that update no parameter: a step's forward pass, the gradients follow.

        With updates, the search counts the gradients and the updates of the parameters in it.
        """
        updated = {update.result for update in self.updates}
        arguments = self.function.body.block.args
        given = self.call.captured.graph.inputs
        text = mark_found(
            self.function,
            self.mesh,
            cluster_named(get_auto_parallel_context("cluster")),
            get_auto_parallel_context("search_mode"),
            results=[k for k in range(len(self.result_types)) if k not in updated],
            parameters={arguments[k]: p.name for k, g in enumerate(given) if (p := g.parameter) is not None},
            rows=[] if get_auto_parallel_context("full_batch") else [arguments[k] for k in self.call.examples],
            level=optimizer_level() if updated else None,
            load=get_auto_parallel_context("strategy_ckpt_load_file"),
        )
        file = get_auto_parallel_context("strategy_ckpt_save_file")
        if file and is_first_rank():
            write_text(Path(file), text)

    def _strategy(self, op: Operation, rows: Sequence[list[int] | str | None]) -> list[LaidOut | None]:
        """The layouts of operands that a user gave: axes as named, or such as make so many parts, alike for a loop."""
        axes: dict[object, tuple[str, ...]] = {}
        layouts: list[LaidOut | None] = []
        for n, (factors, row) in enumerate(zip(rule_of(op).operands, rows, strict=True)):
            if row is None:
                layouts.append(None)
                continue
            keys = [(n, d) if factor is None else factor for d, factor in enumerate(factors)]
            named = LaidOut.parse(self.mesh, row.partition(" ")[2]).cuts if isinstance(row, str) else None
            for d, key in enumerate(keys):
                used = [a for each in axes.values() for a in each]
                if named is not None:
                    axes.setdefault(key, named[d])
                elif key not in axes and isinstance(row, list):
                    axes[key] = self._axes(op, row[d], used)
            layout = LaidOut(self.mesh, tuple(axes[key] for key in keys))
            layouts.append(layout)
            if (layout.cuts if named is not None else list(layout.strategy)) != (named or row):
                raise _not_cut(op, str(row), "one loop runs over dimensions that are cut so, and otherwise")
        return layouts

    def _axes(self, op: Operation, count: int, used: Sequence[str]) -> tuple[str, ...]:
        """The first free axes that make so many parts."""
        free = [name for name in self.mesh.names if name not in used]
        for length in range(len(free) + 1):
            for names in itertools.combinations(free, length):
                if self.mesh.size_of(*names) == count:
                    return names
        raise _not_cut(op, str(count), f"the axes of {self.mesh} that are left do not make {count} parts")

    def _shared(self, argument: int, layout: LaidOut, is_state: bool) -> LaidOut:
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

    def _rows(self, sizes: Sequence[int], axes: tuple[str, ...]) -> LaidOut:
        is_cut = bool(axes) and sizes[0] % self.mesh.size_of(*axes) == 0
        return LaidOut(self.mesh, (axes if is_cut else (), *((),) * (len(sizes) - 1)) if sizes else ())

    def _said(
        self, attributes: ArrayAttr[DictionaryAttr] | None, layouts: Iterable[LaidOut]
    ) -> ArrayAttr[DictionaryAttr]:
        return ArrayAttr(
            DictionaryAttr({**entry.data, MS_SHARDING: StringAttr(str(layout))})
            for entry, layout in zip(attributes or (), layouts, strict=True)
        )
