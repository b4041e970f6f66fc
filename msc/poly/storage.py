"""The storage of a kernel's arrays by the places of its schedule: in values, on the stack, in temporaries, in outputs.

An array that is written and read at one point needs no memory: its value is *forwarded*. In registers, on the stack and
in a scratchpad an array is a *local* buffer of the elements that one run of its block accesses; inputs are copied into
it. In the workspace at the top of the tree it is a temporary of its whole shape. Below loops it is a temporary of the
elements of one iteration, of which concurrent iterations have separate ones. An array without a place is a temporary of
its whole shape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir.affine import AffineExpr

from msc.poly.affine import bounds
from msc.poly.buffers import (
    ArrayAccess,
    LocalBuffer,
    body_accesses,
    fills_box,
    forwarded,
    iterations,
    local_buffer,
    local_buffers,
)
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.nest import Body, ForLoop, Instance, Nest, right_inside, walk
from msc.poly.schedule_tree.nodes import Place, ScheduleError, Tree, all_blocks, copies
from msc.poly.schedule_tree.parts import tile_counts
from msc.poly.valid_extents import ranges_of


@dataclass(frozen=True)
class Around:
    """The variables around a place with their values, those of loops that run at once, and the vector loop's name."""

    ranges: Mapping[int, range]
    parallel: tuple[int, ...] = ()
    vector: str = ""

    @property
    def depth(self) -> int:
        return len(self.ranges)

    def inside(self, loop: ForLoop) -> Around:
        ranges = {**self.ranges, self.depth: iterations(loop, self.ranges)}
        parallel = (*self.parallel, self.depth) if loop.kind == "parallel" else self.parallel
        return Around(ranges, parallel, loop.name if loop.kind == "vector" else self.vector)


def outermost(model: KernelModel, tree: Tree) -> Around:
    """What all loops of a tree are inside of: the sizes of the call, and the counts of tiles over them."""
    ranges = dict(ranges_of(model.sizes))
    for expr in tile_counts(model, tree).values():
        low, high = bounds(expr, ranges)
        ranges[len(ranges)] = range(low, high + 1)
    return Around(ranges)


def within(nests: Sequence[Nest], around: Around) -> Iterator[tuple[Nest, Around]]:
    """All of nests with what is around each, an outer one before those inside."""
    for nest in nests:
        yield nest, around
        yield from within(right_inside(nest), around.inside(nest) if isinstance(nest, ForLoop) else around)


def bodies(nests: Sequence[Nest], around: Around) -> Iterator[tuple[Body, Around]]:
    """All places of a nest, an outer one before those inside, with what is around each."""
    return ((nest, place) for nest, place in within(nests, around) if isinstance(nest, Body))


def instances(nests: Sequence[Nest], around: Around) -> Iterator[tuple[Instance, Around]]:
    """All instances of a nest in order, with what is around each."""
    return ((nest, place) for nest, place in within(nests, around) if isinstance(nest, Instance))


@dataclass(frozen=True)
class BodyArrays:
    """The arrays of a Body: forwarded ones, in buffers of their own, in parts of a temporary, and in outputs.

    `copied` are those in buffers of their own that a block around places too: the buffer takes the values from there
    when the Body begins, and gives them back at its end if something in it is `written`. Those with `partial` sums
    begin with zeros, and are added to what is there.
    """

    forwarded: frozenset[int] = frozenset()
    local: Mapping[int, tuple[LocalBuffer, ...]] = field(default_factory=dict[int, tuple[LocalBuffer, ...]])
    workspace: Mapping[int, LocalBuffer] = field(default_factory=dict[int, LocalBuffer])
    aliased: Mapping[int, int] = field(default_factory=dict[int, int])
    copied: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()
    partial: frozenset[int] = frozenset()

    def __contains__(self, array: int) -> bool:
        return any(array in each for each in (self.forwarded, self.local, self.workspace, self.aliased))

    @property
    def own(self) -> frozenset[int]:
        """The arrays that are stored here, and are no copies."""
        return self.forwarded | self.local.keys() - self.copied | self.workspace.keys() | self.aliased.keys()


@dataclass(frozen=True)
class Storage:
    """By the identity of each Body what lives where, and the temporaries of the function with their shapes."""

    inside: Mapping[int, BodyArrays]
    temporaries: Mapping[int, tuple[int, ...]]

    def has_copies(self, body: Body) -> bool:
        """Whether a Body keeps arrays on the stack for places in it that hold arrays too."""
        inner = (self.inside[id(each)] for each in walk(body.inside) if isinstance(each, Body))
        return bool(self.inside[id(body)].local) and any(a.local or a.workspace or a.aliased for a in inner)


def storage(model: KernelModel, tree: Tree, nests: Sequence[Nest]) -> Storage:
    """What the places of a tree mean for its nests. Raises ScheduleError where an array cannot live in a buffer."""
    blocks, names = list(all_blocks(tree.body)), array_names(model)
    found: dict[int, BodyArrays] = {}
    shapes: dict[int, tuple[int, ...]] = {}
    nested = copies(tree)
    for body, around in bodies(nests, outermost(model, tree)):
        found[id(body)] = _arrays(model, body, blocks[body.block].places, around, names, nested)
    _check_copies(tree, found, names)
    parts = _alike(found)
    for array, buffer in (pair for arrays in parts.values() for pair in arrays.workspace.items()):
        shapes[array] = tuple(map(max, shapes.get(array, buffer.shape), buffer.shape))
    internal = {k for k, array in enumerate(model.arrays) if array.kind == "internal" and 0 not in array.shape}
    placed = {array for arrays in parts.values() for array in arrays.own}
    whole = internal & (internal - placed | set(_accessed_elsewhere(model, nests, parts)))
    _check_whole(tree, whole & shapes.keys(), names)
    shapes |= {k: model.arrays[k].shape for k in whole}
    return Storage(parts, dict(sorted(shapes.items())))


def _check_copies(tree: Tree, found: Mapping[int, BodyArrays], names: Sequence[str]) -> None:
    """A value that is used at the point that computes it is in no memory that a copy could be of."""
    passed = {array for arrays in found.values() for array in arrays.forwarded}
    for array in sorted(passed & {array for arrays in found.values() for array in arrays.copied}):
        place = next(p for block in all_blocks(tree.body) for p in block.places if p.array == names[array])
        raise ScheduleError(f"{place.array} is a value here, which no block inside can copy", place.line)


def _accessed_elsewhere(
    model: KernelModel, nests: Sequence[Nest], found: Mapping[int, BodyArrays], placed: frozenset[int] = frozenset()
) -> Iterator[int]:
    """The arrays that statements access where no block around them places these."""
    for nest in nests:
        match nest:
            case ForLoop():
                yield from _accessed_elsewhere(model, nest.body, found, placed)
            case Body():
                yield from _accessed_elsewhere(model, nest.inside, found, placed | found[id(nest)].own)
            case Instance():
                yield from {array for array, _ in model.statements[nest.statement].accesses()} - placed


def _check_whole(tree: Tree, arrays: Collection[int], names: Sequence[str]) -> None:
    """An array that some blocks access in the workspace as a whole is nowhere else in parts of the workspace."""
    for array in sorted(arrays):
        parts = (b.places for b in all_blocks(tree.body) if b is not tree.body)
        place = next(p for places in parts for p in places if (p.array, p.scope) == (names[array], "workspace"))
        raise ScheduleError(f"{place.array} is also used outside of this block: place it at the top", place.line)


def _arrays(
    model: KernelModel,
    body: Body,
    places: Sequence[Place],
    around: Around,
    names: Sequence[str],
    nested: Collection[int],
) -> BodyArrays:
    passed, local, workspace, aliased = (
        set[int](),
        dict[int, tuple[LocalBuffer, ...]](),
        dict[int, LocalBuffer](),
        dict[int, int](),
    )
    copied, written = set[int](), set[int]()
    wanted = {names.index(place.array): place for place in places}
    accesses = by_array(body_accesses(model, body, around.ranges, wanted))
    for array, uses in accesses.items():
        place = wanted[array]
        if place.scope in names:
            aliased[array] = names.index(place.scope)
        elif place.scope != "workspace":
            if id(place) in nested or model.arrays[array].kind == "input":
                _check_size(uses, place)
            is_copy = id(place) in nested and model.arrays[array].kind == "internal"
            if is_copy:
                written |= {array} if any(use.writes for use in uses) else set()
                copied.add(_copied(array, uses, around.depth, place))
            if forwarded(uses) and not is_copy:
                passed.add(array)
            else:
                local[array] = _buffers(uses, around.depth, place)
        elif body.block != 0:
            buffer = local_buffer(uses, around.depth)
            if buffer is None:
                raise _no_box(place)
            workspace[array] = _apart(buffer, around)
    if around.vector:
        _check_values(around.vector, (place for array, place in wanted.items() if array in {*local, *workspace}))
    partial = frozenset(array for array in copied if wanted[array].partial)
    return BodyArrays(frozenset(passed), local, workspace, aliased, frozenset(copied), frozenset(written), partial)


def _check_values(loop: str, places: Iterator[Place]) -> None:
    """Inside a vector loop a place holds values: an array would be one for all lanes."""
    for place in places:
        message = f"the lanes of {loop} would share {place.array}: place it around their loop"
        raise ScheduleError(message, place.line)


def _check_size(uses: Sequence[ArrayAccess], place: Place) -> None:
    """A copy takes all elements of its buffer, so calls decide nothing of how many these are."""
    if any(use.varies for use in uses):
        raise ScheduleError(f"calls decide how many elements of {place.array} a copy would have", place.line)


def _copied(array: int, uses: Sequence[ArrayAccess], depth: int, place: Place) -> int:
    """The array, if a buffer may hold a copy: if written, it goes back whole, over what threads write beside it."""
    if not any(use.writes for use in uses) or fills_box(uses, depth):
        return array
    message = f"an iteration accesses more elements of {place.array} than it writes"
    raise ScheduleError(f"{message}: its copy would overwrite their neighbours", place.line)


def _buffers(uses: Sequence[ArrayAccess], depth: int, place: Place) -> tuple[LocalBuffer, ...]:
    found = local_buffers(uses, depth)
    if found is None:
        raise _no_box(place)
    return found


def _no_box(place: Place) -> ScheduleError:
    message = f"the elements of {place.array} that an iteration accesses are no box of constant size"
    return ScheduleError(f"{message}: place it in the workspace, at the top", place.line)


def by_array(accesses: Sequence[ArrayAccess]) -> dict[int, list[ArrayAccess]]:
    """The accesses to each array, by its number, in order of these."""
    return {array: [a for a in accesses if a.array == array] for array in sorted({a.array for a in accesses})}


def _apart(buffer: LocalBuffer, around: Around) -> LocalBuffer:
    """The buffer once for each of the iterations that run at once."""
    lead: tuple[AffineExpr, ...] = tuple(AffineExpr.dimension(depth) for depth in around.parallel)
    counts = tuple(around.ranges[depth].stop for depth in around.parallel)
    return replace(buffer, shape=(*counts, *buffer.shape), lead=lead)


def _alike(found: Mapping[int, BodyArrays]) -> dict[int, BodyArrays]:
    """With buffers of places outside a parallel loop as those inside have them: the rest of what threads share."""
    lead: dict[int, int] = {}
    for array, buffer in (pair for arrays in found.values() for pair in arrays.workspace.items()):
        lead[array] = max(lead.get(array, 0), len(buffer.lead))
    return {
        key: replace(arrays, workspace={a: _with_lead(b, lead[a]) for a, b in arrays.workspace.items()})
        for key, arrays in found.items()
    }


def _with_lead(buffer: LocalBuffer, count: int) -> LocalBuffer:
    missing = count - len(buffer.lead)
    zeros: tuple[AffineExpr, ...] = (AffineExpr.constant(0),) * missing
    return replace(buffer, shape=(*(1,) * missing, *buffer.shape), lead=(*zeros, *buffer.lead))
