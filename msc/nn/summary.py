"""`net.summary(x)`: each layer with the shape of its output, its parameters and its multiply-adds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, cast

from msc.frontend.modes import PYNATIVE_MODE, set_context
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.nn.convolution import Convolution, TransposedConvolution
from msc.support.notebooks import html_table

_TITLES = ("layer", "output shape", "parameters", "multiply-adds")


@dataclass
class LayerRow:
    """One layer: its place and kind, what it gives, and what it costs."""

    name: str
    kind: str
    shape: str
    parameters: int
    products: int | None
    """Multiply-adds, or None where the layer has none of its own."""

    @property
    def title(self) -> str:
        """Place and kind."""
        return f"{self.name} ({self.kind})" if self.name else self.kind


@dataclass
class Summary:
    """The rows of a network, and their sums. Its text is a table."""

    rows: list[LayerRow] = field(default_factory=list[LayerRow])
    parameters: int = 0
    trainable: int = 0

    @property
    def products(self) -> int:
        """All multiply-adds of matrix products and convolutions."""
        return sum(row.products or 0 for row in self.rows)

    def __str__(self) -> str:
        cells = [
            (
                f"{row.name} ({row.kind})" if row.name else row.kind,
                row.shape,
                f"{row.parameters:,}",
                _count(row.products),
            )
            for row in self.rows
        ]
        total = ("total", "", f"{self.parameters:,}", f"{self.products:,}")
        widths = [max(len(line[i]) for line in (_TITLES, *cells, total)) for i in range(4)]
        rule = "  ".join("-" * width for width in widths)
        lines = [_line(_TITLES, widths), rule, *(_line(cell, widths) for cell in cells), rule, _line(total, widths)]
        return "\n".join([*lines, f"{self.trainable:,} of {self.parameters:,} parameters are trainable"])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        rows = [(row.title, row.shape, row.parameters, _count(row.products)) for row in self.rows]
        caption = f"{self.trainable:,} of {self.parameters:,} parameters are trainable"
        return html_table(caption, _TITLES, [*rows, ("total", "", self.parameters, self.products)])


def summary(net: Cell, *inputs: Tensor) -> Summary:
    """The summary of a network; with inputs it runs once in PyNative mode, for shapes and multiply-adds."""
    made = Summary()
    parameters = list(net.get_parameters())
    made.parameters = sum(p.size for p in parameters)
    made.trainable = sum(p.size for p in parameters if p.requires_grad)
    results = _run(net, inputs) if inputs else {}
    for name, cell in net.cells_and_names():
        own = list(cell.get_parameters(expand=False))
        if not name and not own and cell.cells():
            continue
        if cell.cells() and not own:
            continue
        result = results.get(id(cell))
        made.rows.append(
            LayerRow(name, type(cell).__name__, _shape(result), sum(p.size for p in own), _products(cell, result))
        )
    return made


def _run(net: Cell, inputs: tuple[Tensor, ...]) -> dict[int, Any]:
    """What each cell gave, when the network ran on inputs."""
    results: dict[int, Any] = {}

    def keep(cell: Cell, args: Any, result: Any) -> None:
        del args
        results[id(cell)] = result

    handles = [cell.register_forward_hook(keep) for _, cell in net.cells_and_names()]
    try:
        with set_context(mode=PYNATIVE_MODE):
            net(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return results


def _shape(result: Any) -> str:
    if isinstance(result, Tensor):
        return "x".join(map(str, result.shape)) or "()"
    if isinstance(result, tuple | list):
        return ", ".join(_shape(part) for part in cast(tuple[Any, ...], result))
    return ""


def _products(cell: Cell, result: Any) -> int | None:
    """Each output of a convolution or dense layer is a sum of products with one filter."""
    weight = cell.parameters_dict(recurse=False).get(_weight_name(cell))
    if weight is None or not isinstance(result, Tensor):
        return None
    if isinstance(cell, TransposedConvolution):
        return result.size * math.prod(weight.shape[1:]) * weight.shape[0] // (result.shape[1] * math.prod(cell.stride))
    if isinstance(cell, Convolution) or type(cell).__name__ == "Dense":
        return result.size * math.prod(weight.shape[1:])
    return None


def _weight_name(cell: Cell) -> str:
    return next((p.name for n, p in cell.parameters_and_names(expand=False) if n == "weight"), "")


def _count(products: int | None) -> str:
    return "" if products is None else f"{products:,}"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    left = [cells[0].ljust(widths[0]), cells[1].ljust(widths[1])]
    return "  ".join([*left, *(cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True))]).rstrip()
