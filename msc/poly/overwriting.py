"""Which arrays of a kernel may lie in one place: each element of one is read for the last time before the other's is
written. An output may so overwrite an input, and until it is written it may hold an internal array.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet

import islpy as isl
from xdsl.ir.affine import AffineDimExpr, AffineMap

from msc.poly.dependences import domain, isl_expr, tuple_of
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.outer_band import loop_row
from msc.poly.scalar import reads
from msc.poly.schedule_tree.nodes import (
    COPIED_TO,
    Block,
    Cut,
    Run,
    ScheduleError,
    Tree,
    all_blocks,
    below,
    blocks,
    loops,
    statements,
    walk,
)
from msc.poly.schedule_tree.proof import reversed_pairs
from msc.poly.schedule_tree.to_isl import to_isl


def may_overwrite(model: KernelModel, tree: Tree, source: int, target: int) -> bool:
    """Whether array `target` may lie on array `source` under this schedule; only where they are alike isl is asked.

    Vectors and unrolled tiles run statements side by side, so a read and the write of its element must be in the same
    iteration of all loops that their statements share.
    """
    if (
        model.arrays[source].shape != model.arrays[target].shape
        or model.arrays[source].dtype != model.arrays[target].dtype
    ):
        return False
    if any(source in s.whole_reads() for s in model.statements):
        return False
    touching = {i for i, s in enumerate(model.statements) if s.target == target or source in _read_arrays(s)}
    order = _order_at_one_point(model, tree, touching, (source, target))
    if order is not None:
        readers = [place for s, place in order.items() if source in _read_arrays(model.statements[s])]
        writers = [place for s, place in order.items() if model.statements[s].target == target]
        return not readers or not writers or max(readers) <= min(writers)
    pairs = _read_then_write(model, source, target)
    if pairs.is_empty():
        return True
    ranks = {i: len(s.extents) for i, s in enumerate(model.statements)}
    shared = dict.fromkeys(loop.axis for loop in loops(tree) if touching <= below(loop))
    same = pairs
    for dims in (tree.axis(name).dims for name in shared):
        if touching <= set(dims):
            same = same.eq_at_multi_union_pw_aff(isl.MultiUnionPwAff(loop_row(dims, ranks)))
    return pairs.subtract(same).is_empty() and reversed_pairs(to_isl(model, tree).schedule, pairs).is_empty()


def _order_at_one_point(
    model: KernelModel, tree: Tree, touching: AbstractSet[int], arrays: tuple[int, int]
) -> dict[int, int] | None:
    """The places of statements in the order in which they run at one point, if no other point meets their elements.

    So it is where each access to the arrays has an element of its own for each point, the same in all statements, and
    all loops around any of the statements go over one dimension of all of them. Most kernels that work element by
    element are like that; of others isl has to be asked. None if not so.
    """
    at = {m for s in touching for array, m in model.statements[s].accesses() if array in arrays}
    if len(at) > 1 or any(not _is_one_to_one(m) for m in at):
        return None
    for node in walk(tree.body):
        here = below(node)
        if isinstance(node, Run) or here.isdisjoint(touching):
            continue
        dims = tree.axis(node.axis).dims
        if isinstance(node, Cut) or not here.issuperset(touching) or len({dims[s] for s in touching}) > 1:
            return None
    runs = (node.statements for node in walk(tree.body) if isinstance(node, Run))
    return {s: place for place, s in enumerate(s for run in runs for s in run if s in touching)}


def _is_one_to_one(access: AffineMap) -> bool:
    """Whether no two points of a statement have one element: each dimension is an index of its own."""
    dims = {r.position for r in access.results if isinstance(r, AffineDimExpr)}
    return len(dims) == access.num_dims


def check_aliases(model: KernelModel, tree: Tree) -> None:
    """Raise ScheduleError, with its line, for an array that lies in an output, or with another one there, too long."""
    names = array_names(model)
    held: dict[int, list[int]] = {}
    for place in (place for block in all_blocks(tree.body) for place in block.places if place.scope in names):
        array, output = names.index(place.array), names.index(place.scope)
        if not may_overwrite(model, tree, array, output):
            message = f"{place.array} cannot lie in {place.scope}"
            raise ScheduleError(f"{message}: elements differ, or one is read after the other is written", place.line)
        for other in held.setdefault(output, []):
            both = (array, other), (other, array)
            if array != other and not any(may_overwrite(model, tree, first, last) for first, last in both):
                message = f"{place.array} and {names[other]} cannot lie in {place.scope} both"
                raise ScheduleError(f"{message}: each is read after the other is written", place.line)
        held[output].append(array)
    lies_in = {names[output]: {names[array] for array in (output, *arrays)} for output, arrays in held.items()}
    _check_copies_back(model, tree.body, lies_in, {})


def _check_copies_back(
    model: KernelModel, block: Block, lies_in: Mapping[str, AbstractSet[str]], around: Mapping[str, str]
) -> None:
    """A copy goes back when its block ends: over all that the block wrote to the same memory.

    `lies_in` are the arrays in the memory of an output, that output among them, and `around` is where the blocks around
    place arrays.
    """
    names = array_names(model)
    written = {names[model.statements[s].target] for s in statements(block)}
    for place in block.places:
        home = around.get(place.array, "")
        is_written_copy = place.scope in COPIED_TO and place.array in written
        for other in sorted(written & lies_in.get(home, set()) - {place.array}) if is_written_copy else ():
            message = f"{place.array} goes back to {home} when this block ends"
            raise ScheduleError(f"{message}, over what the block writes to {other}", place.line)
    inner = {**around, **{place.array: place.scope for place in block.places}}
    for each in (each for node in block.nodes for each in blocks(node)):
        _check_copies_back(model, each, lies_in, inner)


def aliased_outputs(model: KernelModel, tree: Tree, arrays: Collection[int]) -> dict[int, int]:
    """Those of some internal arrays that may lie in an output until it is written, to that output."""
    found: dict[int, int] = {}
    for output in [a for a, array in enumerate(model.arrays) if array.kind == "output"]:
        held = [output]
        for array in _sources(model, output):
            wanted = array in arrays and array not in found
            if wanted and all(may_overwrite(model, tree, array, later) for later in held):
                found[array] = output
                held.append(array)
    return found


def _sources(model: KernelModel, target: int) -> list[int]:
    """Internal arrays whose elements those of `target` at the same places are made of, the last made first."""
    found: dict[int, None] = {}
    todo = [target]
    while todo:
        statement = _only_write(model, todo.pop(0))
        if statement is not None:
            here = {r.operand for r in reads(statement.body) if r.index == statement.write and not r.indirect}
            internal = [a for a in sorted(here) if model.arrays[a].kind == "internal" and _only_write(model, a)]
            todo += [array for array in internal if array not in found]
            found.update(dict.fromkeys(internal))
    order = [s.target for s in model.statements]
    return sorted(found, key=order.index, reverse=True)


def _only_write(model: KernelModel, array: int) -> KernelStatement | None:
    """The statement that writes an array, if it is the only one and does so once for each element."""
    writing = [s for s in model.statements if s.target == array]
    return writing[0] if len(writing) == 1 and writing[0].combine is None else None


def _read_then_write(model: KernelModel, source: int, target: int) -> isl.UnionMap:
    """Statement instances that read an element, mapped to those that write it."""
    reading: list[str] = []
    writing: list[str] = []
    for number, statement in enumerate(model.statements):
        instance = tuple_of(number, len(statement.extents))
        maps = [r.index for r in reads(statement.body) if r.operand == source]
        reading += [f"{instance} -> E[{', '.join(map(isl_expr, m.results))}]" for m in maps]
        if statement.target == target:
            writing.append(f"{instance} -> E[{', '.join(map(isl_expr, statement.write.results))}]")
    instances = domain(model)
    read = isl.UnionMap("{ " + "; ".join(reading) + " }").intersect_domain(instances)
    written = isl.UnionMap("{ " + "; ".join(writing) + " }").intersect_domain(instances)
    return read.apply_range(written.reverse())


def _read_arrays(statement: KernelStatement) -> set[int]:
    return {r.operand for r in reads(statement.body)}
