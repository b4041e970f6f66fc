"""Layouts in the text of a module: its mesh, the layouts of arguments, results and parameters, those of operations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from msc.dialects.ms.attributes import MS_LAYOUTS, MS_MESH, MS_SHARD, MS_SHARDING
from msc.dialects.ms.structure import ParameterOp
from msc.ir.donation import updates
from msc.ir.typed import is_tensor, shape
from msc.parallel.layouts import Layout
from msc.parallel.mesh import Mesh

_LAYOUT = re.compile(r"\[[^\]]*\](?: (?:sum|prod|max|min)\([^)]*\))?")

_MARK = re.compile(rf"\*|{_LAYOUT.pattern}")


def mesh_of(module: ModuleOp) -> Mesh | None:
    """The mesh of a module; None if it has none. Raises MSC1100."""
    text = _text(module.attributes.get(MS_MESH))
    return None if text is None else Mesh.parse(text)


def set_mesh(module: ModuleOp, text: str) -> None:
    """Have a module run on a mesh, if it has none of its own. Raises MSC1100."""
    module.attributes.setdefault(MS_MESH, StringAttr(str(Mesh.parse(text))))


def parameter_layouts(module: ModuleOp, mesh: Mesh, *, are_parts: bool = False) -> dict[str, Layout]:
    """The layouts of the parameters that have one, whose types may be those of parts by now. Raises MSC1101."""
    found: dict[str, Layout] = {}
    for op in module.ops:
        text = _text(op.attributes.get(MS_SHARDING)) if isinstance(op, ParameterOp) else None
        if text is not None and isinstance(op, ParameterOp):
            layout = Layout.parse(mesh, text)
            found[op.symbol] = layout if are_parts else _checked(layout, shape(op.type))
    return found


def argument_layouts(function: FuncOp, mesh: Mesh, wanted: Mapping[SSAValue, Layout]) -> list[Layout | None]:
    """Those of arguments: as said, as wanted, or whole; None for what is no tensor. They are said from then on."""
    found: list[Layout | None] = []
    attributes = list(function.arg_attrs or [DictionaryAttr({})] * len(function.body.block.args))
    for n, argument in enumerate(function.body.block.args):
        if not is_tensor(argument.type):
            found.append(None)
            continue
        text = _text(attributes[n].data.get(MS_SHARDING))
        layout = Layout.parse(mesh, text) if text is not None else wanted.get(argument)
        layout = layout or Layout.whole(mesh, len(shape(argument)))
        found.append(_checked(layout, shape(argument)))
        attributes[n] = DictionaryAttr({**attributes[n].data, MS_SHARDING: StringAttr(str(layout))})
    function.arg_attrs = ArrayAttr(attributes)
    return found


def result_layouts(function: FuncOp, mesh: Mesh, arguments: Sequence[Layout]) -> list[Layout]:
    """Those of results: as said, that of the argument which a result updates, or whole. They are said from then on."""
    outputs = function.function_type.outputs.data
    attributes = list(function.res_attrs or [DictionaryAttr({})] * len(outputs))
    found: list[Layout] = []
    for n, type_ in enumerate(outputs):
        text, rank = _text(attributes[n].data.get(MS_SHARDING)), len(shape(type_)) if is_tensor(type_) else 0
        updated = updates(function).get(n)
        whole = Layout.whole(mesh, rank) if updated is None else arguments[updated]
        layout = Layout.parse(mesh, text) if text is not None else whole
        found.append(_checked(layout, shape(type_) if is_tensor(type_) else ()))
        attributes[n] = DictionaryAttr({**attributes[n].data, MS_SHARDING: StringAttr(str(layout))})
    function.res_attrs = ArrayAttr(attributes)
    return found


def mark_text(layouts: Sequence[Layout | str | None]) -> StringAttr:
    """The mark of an operation: the layouts of its operands, `*` for one that is left open."""
    return StringAttr(", ".join("*" if layout is None else str(layout) for layout in layouts))


def mark_of(op: Operation, mesh: Mesh) -> list[Layout | None]:
    """The layouts of the operands that an operation is marked with. Raises MSC1101."""
    text = _text(op.attributes.get(MS_SHARD)) or ""
    found = [None if part == "*" else Layout.parse(mesh, part) for part in _MARK.findall(text)]
    return found + [None] * (len(op.operands) - len(found))


def layouts_text(operands: Sequence[Layout], results: Sequence[Layout]) -> StringAttr:
    """The layouts of an operation, as its attribute says them."""
    sides = [", ".join(map(str, side)) for side in (operands, results)]
    return StringAttr(" -> ".join(sides))


def layouts_of(op: Operation, mesh: Mesh) -> tuple[list[Layout], list[Layout]]:
    """The layouts of the operands and the results of an operation that has them. Raises MSC1101."""
    text = cast(StringAttr, op.attributes[MS_LAYOUTS]).data
    before, _, after = text.partition(" -> ")
    operands, results = ([Layout.parse(mesh, part) for part in _LAYOUT.findall(side)] for side in (before, after))
    return operands, results


def _checked(layout: Layout, sizes: Sequence[int]) -> Layout:
    layout.local_shape(sizes)
    return layout


def _text(attribute: Attribute | None) -> str | None:
    return attribute.data if isinstance(attribute, StringAttr) else None
