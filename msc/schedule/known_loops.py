"""A cache of loops: what one pass decides to compare forms of kernels, another one does not decide again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp

from msc.poly.dependences import Dependences
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.text import from_lines, to_lines
from msc.schedule.strategy import decided_loops
from msc.schedule.sums.sum_order import Orders
from msc.schedule.threads import NOWHERE, Sharing, Surroundings
from msc.support.forked import Lines, results
from msc.targets.machine import Machine

J = TypeVar("J")

_SLOT = "known_loops"
"""The attribute of a module object that holds them until they are taken; a module from a file has none."""


@dataclass(frozen=True)
class KnownLoops:
    """Loops of kernels that stand in no loop, with the reasons, by the structures of their models.

    They were decided for one machine and one number of threads: of others nothing is known.
    """

    machine: Machine
    threads: int
    _found: dict[str, tuple[Sharing, list[str]]] = field(default_factory=dict[str, tuple[Sharing, list[str]]])

    def decided(self, model: KernelModel, deps: Callable[[], Dependences]) -> Sharing:
        """The loops of a kernel, which are known then. Only for those that are not yet, its dependences are asked."""
        if model.structure not in self._found:
            reasons = list[str]()
            sharing = decided_loops(model, deps(), self.machine, self.threads, reasons)
            self._found[model.structure] = sharing, reasons
        return self._found[model.structure][0]

    def loops(
        self,
        model: KernelModel,
        deps: Dependences,
        target: Machine,
        threads: int,
        reasons: list[str],
        around: Surroundings = NOWHERE,
        *,
        blocks: bool = True,
        orders: Orders | None = None,
    ) -> Sharing:
        """What `decided_loops` gives, which is not asked for what is known."""
        is_asked = (target, threads, around, blocks, orders) == (self.machine, self.threads, NOWHERE, True, None)
        if not is_asked or model.structure not in self._found:
            return decided_loops(model, deps, target, threads, reasons, around, blocks=blocks, orders=orders)
        sharing, why = self._found[model.structure]
        reasons += why
        return sharing

    def choices(self, choose: Callable[[J], list[str]], jobs: Sequence[J]) -> Sequence[list[str]]:
        """What `choose` says of each job, on several processors; the loops that it decided meanwhile are known then."""

        def chosen(job: J) -> Lines:
            known = len(self)
            return [choose(job), *self.written(known)]

        found, lines = results(chosen, jobs, each=1), list[list[str]]()
        for k, job in enumerate(jobs):
            line, *texts = found.get(k) or chosen(job)
            self.read(texts)
            lines.append(line)
        return lines

    def __len__(self) -> int:
        return len(self._found)

    def written(self, first: int) -> Lines:
        """What was found from a number on, as texts for another process."""
        texts: Lines = []
        for structure, (sharing, reasons) in list(self._found.items())[first:]:
            texts += [[structure, *(["either"] if sharing.either else [])], to_lines(sharing.tree), reasons]
        return texts

    def read(self, texts: Sequence[list[str]]) -> None:
        """Take what `written` gave in another process."""
        for (structure, *either), lines, reasons in zip(texts[::3], texts[1::3], texts[2::3], strict=True):
            self._found.setdefault(structure, (Sharing(from_lines(lines), bool(either)), reasons))

    def attach(self, module: ModuleOp) -> None:
        """Keep the cache with a module, until it is `taken`."""
        vars(module)[_SLOT] = self

    @staticmethod
    def taken(module: ModuleOp, machine: Machine, threads: int) -> KnownLoops:
        """The cache that is attached to a module, which keeps it no longer; without one, an empty one."""
        left = vars(module).pop(_SLOT, None)
        return left if isinstance(left, KnownLoops) else KnownLoops(machine, threads)
