"""The contracts of passes: what each requires of a module, ensures and breaks. They are checked before every pass.

A `Property` is a predicate on modules, which a walk over the operations decides. A stage file that somebody edited and
a pipeline that somebody typed are therefore checked like any other. A pass states its `contract`:

    class PackOperands(ModulePass):
        name = "pack-operands"
        contract = Contract(
            requires=(KERNELS, UNSCHEDULED),
            breaks=(WEIGHTS_HOISTED,),
            runs_after={"winograd": "the transformed weights are operands of products too"},
        )

`requires` is what the pass needs to be correct. `runs_after` is about profit: the pass gives a better program after
that other pass. It contains the name of the pass, since passes of one level do not import each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, raise_any


@dataclass(frozen=True)
class Violation:
    """An operation that violates a property; `reason` continues a sentence that begins with its name."""

    op: Operation
    reason: str


@dataclass(frozen=True, eq=False)
class Property:
    """Something that holds of a module or not; `needs` names what is missing when it does not, as a noun.

    `violations` yields the operations that violate it, in the order of the text. It changes nothing, and takes no more
    than a walk over the module.
    """

    name: str
    needs: str
    violations: Callable[[ModuleOp], Iterator[Violation]] = field(repr=False)

    def holds(self, module: ModuleOp) -> bool:
        """Whether the module has the property."""
        return next(self.violations(module), None) is None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Contract:
    """What a pass requires, ensures and breaks; and behind which passes it runs to more profit, with the reasons.

    A pass keeps every property that it does not break.
    """

    requires: tuple[Property, ...] = ()
    ensures: tuple[Property, ...] = ()
    breaks: tuple[Property, ...] = ()
    runs_after: Mapping[str, str] = field(default_factory=dict[str, str])


NOTHING = Contract()


def contract_of(item: ModulePass | type[ModulePass]) -> Contract:
    """The contract of a pass; that of a pass which states none (xDSL's own) asks and spoils nothing."""
    found = getattr(item, "contract", NOTHING)
    assert isinstance(found, Contract), item
    return found


Makers = Callable[[Property], Sequence[str]]
"""The names of the passes that ensure a property."""


@dataclass
class Holding:
    """The properties that a module is known to have while passes run over it.

    A property is looked for when a pass requires it, and then believed until a pass breaks it.
    """

    makers: Makers
    known: set[Property] = field(default_factory=set[Property])
    done: list[str] = field(default_factory=list[str])

    def require(self, item: ModulePass, module: ModuleOp) -> None:
        """Raises one MscError with an MSC0414 for each property that the pass needs and the module does not have."""
        missing = list[Diagnostic]()
        for needed in contract_of(item).requires:
            violation = None if needed in self.known else next(needed.violations(module), None)
            if violation is None:
                self.known.add(needed)
            else:
                missing.append(self._missing(item.name, needed, violation))
        raise_any(missing)

    def ran(self, item: ModulePass) -> None:
        """Note that a pass has run."""
        self.known -= set(contract_of(item).breaks)
        self.done.append(item.name)

    def broken_by(self, item: ModulePass, module: ModuleOp) -> list[Diagnostic]:
        """What a pass that has run spoilt against its word, as an MSC0901 each: a bug of the pass."""
        return [
            Diagnostic(
                "MSC0901",
                f"pass '{item.name}' left a module without {lost.needs} and does not say so: '{violation.op.name}'"
                f" {violation.reason}",
                source_location(violation.op),
            )
            for lost in sorted(self.known, key=str)
            if (violation := next(lost.violations(module), None)) is not None
        ]

    def _missing(self, name: str, needed: Property, violation: Violation) -> Diagnostic:
        makers = self.makers(needed)
        makes = "makes" if len(makers) == 1 else "make"
        made = f"; {' and '.join(makers)} {makes} them" if makers else ""
        message = f"{name} needs {needed.needs}{made}"
        note = f"'{violation.op.name}' {violation.reason}"
        left = [maker for maker in makers if maker not in self.done]
        advice = f"run {left[0]} before {name}" if left else None
        return Diagnostic("MSC0414", message, source_location(violation.op), notes=(note,), help=advice)


@dataclass(frozen=True)
class Reason:
    """Why a pass stands where it stands: `pass_name` and what it has to do with it."""

    pass_name: str
    text: str


def reasons(passes: Sequence[ModulePass | type[ModulePass]]) -> list[tuple[Reason, ...]]:
    """For each pass of a pipeline the reasons of its place: what it makes again, and what it profits from.

    A pass runs a second time because one between its runs broke what it ensures, or because it runs after that one.
    """
    found = list[tuple[Reason, ...]]()
    for position, item in enumerate(passes):
        contract, since = contract_of(item), passes[_previous(passes, position) : position]
        broken = (Reason(p.name, f"breaks {b}") for p in since for b in contract_of(p).breaks if b in contract.ensures)
        profits = (Reason(p.name, contract.runs_after[p.name]) for p in since if p.name in contract.runs_after)
        found.append(tuple(dict.fromkeys((*broken, *profits))))
    return found


def _previous(passes: Sequence[ModulePass | type[ModulePass]], position: int) -> int:
    """The position after the previous run of the pass at `position`; 0 if this is its first."""
    earlier = (k for k in range(position - 1, -1, -1) if passes[k].name == passes[position].name)
    return next(earlier, -1) + 1


def order_problems(
    passes: Sequence[ModulePass | type[ModulePass]],
    given: Sequence[Property] = (),
    wanted: Sequence[Property] = (),
) -> list[str]:
    """What is wrong with a pipeline by the contracts alone, for modules with the properties `given`.

    Each pass must find what it requires, the last leave what is `wanted`, and a pass that profits from another one
    run behind it once at least.
    """
    held, problems = set(given), list[str]()
    for item in passes:
        contract = contract_of(item)
        problems += [f"{item.name} needs {p.needs}" for p in contract.requires if p not in held]
        held = (held - set(contract.breaks)) | set(contract.ensures)
    problems += [f"the last pass leaves no {p.needs}" for p in wanted if p not in held]
    names = [item.name for item in passes]
    for item in dict.fromkeys(type(p) if isinstance(p, ModulePass) else p for p in passes):
        last = len(names) - 1 - names[::-1].index(item.name)
        for before, reason in contract_of(item).runs_after.items():
            if before in names and names.index(before) > last:
                problems.append(f"{item.name} runs after {before}: {reason}")
    return problems
