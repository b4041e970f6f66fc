"""Cells that hold cells: in a row, as a list, as a dictionary."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, overload

from msc.frontend.errors import ApiAttributeError, ApiIndexError, ApiTypeError
from msc.nn.cell import Cell
from msc.support.wording import a

__all__ = ["CellDict", "CellList", "SequentialCell"]


class _Numbered(Cell):
    """Base: cells under the names "0", "1", ...; a list of them."""

    def _replace(self, cells: Iterable[object]) -> None:
        given = list(cells)
        self._cells.clear()
        for i, cell in enumerate(given):
            self.insert_child_to_cell(str(i), cell)

    def _place(self, index: int) -> int:
        size = len(self._cells)
        if not -size <= index < size:
            raise ApiIndexError("MSC0826", f"{type(self).__name__} has {size} cells; there is no cell {index}")
        return index % size

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells())

    def __bool__(self) -> bool:
        return True

    def append(self, cell: object) -> _Numbered:
        """Add a cell at the end."""
        self.insert_child_to_cell(str(len(self)), cell)
        return self

    def insert(self, index: int, cell: object) -> None:
        """Add a cell in front of another one."""
        cells: list[object] = [*self.cells()]
        cells.insert(index, cell)
        self._replace(cells)

    def extend(self, cells: Iterable[object]) -> _Numbered:
        """Add cells at the end."""
        for cell in cells:
            self.append(cell)
        return self

    def __delitem__(self, index: int | slice) -> None:
        cells = self.cells()
        del cells[index if isinstance(index, slice) else self._place(index)]
        self._replace(cells)

    def __setitem__(self, index: int, cell: object) -> None:
        cells: list[object] = [*self.cells()]
        cells[self._place(index)] = cell
        self._replace(cells)


class SequentialCell(_Numbered):
    """Cells one after the other: `SequentialCell(a, b)`, of a list, or of an OrderedDict, whose keys name them."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and type(args[0]) in (dict, OrderedDict):
            for name, cell in args[0].items():
                self.insert_child_to_cell(name, cell)
        else:
            self._replace(args[0] if len(args) == 1 and type(args[0]) in (list, tuple) else args)

    def construct(self, *args: Any) -> Any:
        if not self._cells:
            return args[0] if len(args) == 1 else args
        result = self.cells()[0](*args)
        for cell in self.cells()[1:]:
            result = cell(result)
        return result

    @overload
    def __getitem__(self, index: int) -> Cell: ...

    @overload
    def __getitem__(self, index: slice) -> SequentialCell: ...

    def __getitem__(self, index: int | slice) -> Cell | SequentialCell:
        if isinstance(index, slice):
            part = SequentialCell()
            part.__dict__["_cells"].update(list(self.name_cells().items())[index])
            return part
        return self.cells()[self._place(index)]


class CellList(_Numbered):
    """A list of cells, whose parameters belong to the cell that it is an attribute of."""

    IS_LIST: ClassVar = True
    """`vmap` runs each cell on its own example."""

    def __init__(self, *args: Any, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix)
        self._replace(args[0] if len(args) == 1 and not isinstance(args[0], Cell) else args)

    def construct(self, *args: Any) -> Any:
        raise ApiAttributeError(
            "MSC0820",
            f"{a(type(self).__name__)} is a list, which computes nothing",
            help="call its cells one after the other, or make an nn.SequentialCell of them",
        )

    @overload
    def __getitem__(self, index: int) -> Cell: ...

    @overload
    def __getitem__(self, index: slice) -> CellList: ...

    def __getitem__(self, index: int | slice) -> Cell | CellList:
        if isinstance(index, slice):
            part = CellList([], auto_prefix=False)
            part.__dict__["_cells"].update({str(i): cell for i, cell in enumerate(self.cells()[index])})
            return part
        return self.cells()[self._place(index)]


class CellDict(Cell):
    """A dictionary of cells, whose parameters belong to the cell that it is an attribute of."""

    def __init__(self, *args: Any, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix)
        if args:
            self.update(args[0])

    def update(self, cells: Any) -> None:
        """Add cells, given as a dictionary or as pairs, or put them in the place of those of the same names."""
        for name, cell in dict[str, Any](cells).items():
            self.insert_child_to_cell(name, cell)

    def __getitem__(self, key: str) -> Cell:
        if key not in self._cells:
            raise ApiTypeError("MSC0826", f"CellDict has no cell {key!r}; it has {', '.join(self._cells) or 'none'}")
        return self._cells[key]

    def __setitem__(self, key: str, cell: object) -> None:
        self.insert_child_to_cell(key, cell)

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __contains__(self, key: str) -> bool:
        return key in self._cells

    def keys(self) -> list[str]:
        """The names of the cells."""
        return list(self._cells)

    def values(self) -> list[Cell]:
        """The cells."""
        return self.cells()

    def items(self) -> list[tuple[str, Cell]]:
        """Names and cells."""
        return list(self._cells.items())

    def clear(self) -> None:
        """Remove all cells."""
        self._cells.clear()

    def pop(self, key: str) -> Cell:
        """Remove the cell of a name and return it."""
        cell = self[key]
        del self._cells[key]
        return cell
