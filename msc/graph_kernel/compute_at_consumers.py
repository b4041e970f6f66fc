"""Pass `compute-at-consumers`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp
from xdsl.passes import ModulePass

from msc.analysis.bytes import bytes_of, bytes_read, bytes_written
from msc.analysis.constancy import is_constant
from msc.analysis.kernel_model import kernel_model, output_positions
from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.analysis.target import target_of
from msc.dialects.element_types import BYTES
from msc.dialects.gk import COMPUTE_AT, KernelOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph_kernel.merged_kernels import merge
from msc.ir.contracts import Contract
from msc.ir.typed import static_shape
from msc.poly.alignment import aligned, is_along, runs_along
from msc.poly.model import KernelModel
from msc.poly.remembered import remembered
from msc.schedule.partial_sums import long_sums
from msc.targets.machine import Machine

_Loop: TypeAlias = Mapping[int, int]
"""The dimension of each statement of a kernel that one loop runs over."""


@dataclass(frozen=True)
class ComputeAtConsumers(ModulePass):
    """Compute a producer at a loop of its consumer, a block at a time, where the tensor between them would leave L2.

    Takes: kernels. Gives: the same kernels; of a chain of them, each the only reader of the one before, one kernel.
    What its members give each other is materialized (`gk.materialize`), a block at a time along one axis: one loop of
    all of them runs over it, outermost. The first kernel may reduce; those behind it read nothing twice. Inputs that
    the loop does not divide are read for each block: they take half of L2 at most and no more than the intermediates,
    and the whole chain takes more. Where nothing is reduced, a block fits L1; a product is cut along its rows. Blocks
    are whole vectors. A kernel that says at which loops of its reader it is to be computed (`gk.compute_at`, as those
    of `winograd` do) is merged with that in any case. Left alone: all others where calls decide sizes, or with several
    threads: each thread goes on with the rows that it wrote, and would fetch blocks along other axes from the others.
    So are kernels with long sums for any number of threads: their K-blocks, which no member has, decide how they round.
    Keeps: the meaning, bit by bit.
    """

    name = "compute-at-consumers"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        runs_after={
            "winograd": "it marks producers that are computed at rows of tiles",
            "assign-layouts": "a block is a part of a stored tensor",
            "pack-operands": "a block is read in its stored layout",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for kernel in _kernels(op):
            if kernel.parent is not None and COMPUTE_AT in kernel.attributes:
                chain = list(_asked(kernel))
                merge(chain, [_axes(each) for each in chain[:-1]])
        if has_open_sizes(op) or target.threads != 1:
            return
        for kernel in _kernels(op):
            chain = [] if kernel.parent is None else _chain(kernel, target.machine)
            if chain:
                merge([link.kernel for link in chain], [[link.axis] for link in chain[:-1] if link.axis is not None])


def _kernels(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.walk() if isinstance(op, KernelOp)]


def _axes(kernel: KernelOp) -> tuple[int, ...]:
    """The axes of its result, loops over which a kernel says it is to be computed at."""
    axes = kernel.attributes.get(COMPUTE_AT)
    return tuple(map(int, axes.get_values())) if isinstance(axes, DenseArrayBase) else ()


def _asked(kernel: KernelOp) -> Iterator[KernelOp]:
    """A kernel and those behind it, as far as each says at which loops of the next one it is to be computed."""
    yield kernel
    reader = _reader(kernel) if _axes(kernel) else None
    if reader is not None:
        yield from _asked(reader)


@dataclass(frozen=True)
class _Link:
    """A kernel of a chain, the loop that runs over the blocks, and the axis of the result that it runs along."""

    kernel: KernelOp
    model: KernelModel
    loop: _Loop
    axis: int | None

    @property
    def reduces(self) -> bool:
        """Whether some statement updates what it writes."""
        return any(s.combine for s in self.model.statements)

    @property
    def sums_blocks(self) -> bool:
        """Whether some sum is so long that it is added up in blocks."""
        return bool(long_sums(self.model))

    @property
    def kept(self) -> int:
        """Bytes of the inputs that each block reads as a whole."""
        whole = (v for k, v in enumerate(self.kernel.inputs) if not runs_along(self.model, self.loop, k))
        return sum(map(bytes_of, whole))


def _chain(first: KernelOp, target: Machine) -> list[_Link]:
    """The chain from a kernel on that pays, along the axis for which the least is read for each block."""
    if _reader(first) is None or first.materialized or bytes_read(first) + bytes_written(first) <= target.l1:
        return []
    chains = [_links(first, axis) for axis in range(len(static_shape(first.results[0])))]
    return min((chain for chain in chains if _pays(chain, target)), key=_kept, default=list[_Link]())


def _pays(chain: Sequence[_Link], target: Machine) -> bool:
    """Whether the intermediates would leave the cache, and the inputs of every block stay."""
    if len(chain) < 2 or chain[0].sums_blocks or not _is_of_vectors(chain[0], target):
        return False
    between = [bytes_written(link.kernel) for link in chain[:-1]]
    variable = sum(bytes_of(value) for value in chain[0].kernel.inputs if not is_constant(value))
    all_ = variable + sum(between) + bytes_written(chain[-1].kernel)
    fits = _is_along_rows(chain[0]) if chain[0].reduces else max(between) // _blocks(chain[0], target) <= target.l1
    is_more = sum(between) > target.l1 and sum(between) >= _kept(chain)
    return fits and is_more and _kept(chain) <= target.l2 // 2 < all_


def _is_along_rows(link: _Link) -> bool:
    """Whether neighbours along the axis lie side by side, so that tiles of it are whole vectors."""
    return link.axis == len(static_shape(link.kernel.results[0])) - 1


def _extent_and_bytes(link: _Link) -> tuple[int, int]:
    """Of the loop over blocks, and of an element of the result."""
    statement, dim = next(iter(link.loop.items()))
    (array,) = output_positions(link.kernel)
    return link.model.statements[statement].extents[dim], BYTES[link.model.arrays[array].dtype]


def _is_of_vectors(link: _Link, target: Machine) -> bool:
    """Whether the axis is several vectors."""
    extent, size = _extent_and_bytes(link)
    vectors, rest = divmod(extent, target.lanes(size))
    return vectors > 1 and not rest


def _blocks(link: _Link, target: Machine) -> int:
    """How many blocks there are, a pair of lines wide."""
    extent, size = _extent_and_bytes(link)
    return max(1, extent * size // target.line_pair)


def _kept(chain: Sequence[_Link]) -> int:
    return sum(link.kept for link in chain)


def _links(kernel: KernelOp, axis: int) -> list[_Link]:
    """A kernel and those behind it that read blocks along an axis of its result."""
    model = kernel_model(kernel)
    (array,) = output_positions(kernel)
    loop = _loop_along(model, array, axis)
    links = [] if loop is None else [_Link(kernel, model, loop, axis)]
    while links and links[-1].axis is not None:
        link = _next(links[-1])
        if link is None:
            break
        links.append(link)
    return links


def _next(link: _Link) -> _Link | None:
    """The reader of what a kernel gives, if one loop of it runs over the same blocks, and it reduces nothing.

    Where indices are data, each block may read every element.
    """
    reader = _reader(link.kernel)
    if reader is None or reader.materialized or link.axis is None:
        return None
    model, given = kernel_model(reader), list(reader.inputs).index(link.kernel.results[0])
    loop = _loop_along(model, given, link.axis)
    if loop is None or any(given in statement.whole_reads() for statement in model.statements):
        return None
    results = output_positions(reader)
    axes = range(len(model.arrays[results[0]].shape)) if len(results) == 1 else ()
    link = _Link(reader, model, loop, next((a for a in axes if is_along(model, loop, results[0], a)), None))
    return None if link.reduces else link


def _reader(kernel: KernelOp) -> KernelOp | None:
    """The kernel in the same block that alone reads the only result of one."""
    if len(kernel.results) > 1 or not kernel.results[0].has_one_use():
        return None
    reader = next(iter(kernel.results[0].uses)).operation
    return reader if isinstance(reader, KernelOp) and reader.parent is kernel.parent else None


def _loop_along(model: KernelModel, array: int, axis: int) -> _Loop | None:
    """The loop of all statements that an axis of an array is indexed by."""
    return next((loop for loop in _loops_of_all(model) if is_along(model, loop, array, axis)), None)


@remembered
def _loops_of_all(model: KernelModel) -> Sequence[_Loop]:
    return aligned(model, range(len(model.statements))).loops
