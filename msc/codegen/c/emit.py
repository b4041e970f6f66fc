"""A loop-stage module as a C program: header, source, and where the weights lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from msc import __version__
from msc.analysis.bytes import stack_bytes
from msc.analysis.work import operations_run
from msc.codegen.c.entry import PROFILE_CLOCK, PROFILE_LAP, EntryEmitter
from msc.codegen.c.header import emit_header
from msc.codegen.c.kernels import Kernel, emit_caller, emit_kernel, kernel_texts
from msc.codegen.c.merged_kernels import merged_kernels
from msc.codegen.c.names import SYSTEM, NameScope, identifier, module_identifier
from msc.codegen.c.options import COptions
from msc.codegen.c.plan import EntryPlan, entry_functions, read_plan
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.text import sections
from msc.codegen.c.types import INDEX_TYPE
from msc.dialects.ms.warnings import warnings_of
from msc.ir.entry import ENTRY, STRUCTURE
from msc.runtime.program import CProgram, LinkedCode, Signature, SizeSpec, TensorSpec
from msc.runtime.units import SplitSource
from msc.support.escaping import c_comment, c_string
from msc.support.naming import unique
from msc.targets.machine import Machine


@dataclass(frozen=True)
class Accelerator:
    """Where kernels run that the program's own processor does not: C of another code generator.

    `opening` stands before all kernels; `kernel` turns the definition that computes here into one that launches;
    `clock` is the body of `msc_now`, which a build with clocks asks for the time in seconds.
    """

    opening: str
    kernel: Callable[[FuncOp, Kernel], Kernel]
    clock: str
    companions: Mapping[str, str]
    linked: LinkedCode


def emit_c(
    module: ModuleOp, options: COptions | None = None, accelerator: Callable[[bool], Accelerator] | None = None
) -> CProgram:
    """The C program of a loop-stage module: the same bytes for the same module and options.

    With an `accelerator`, made for builds with clocks or without them, kernels run there.
    Raises MSC0905 for IR that has no C form; a verified loop-stage module has one.
    """
    chosen = options or COptions()
    functions = entry_functions(module)
    plans = [read_plan(module, function) for function in functions]
    signature = _signature(module, functions, plans, chosen)
    prelude = Prelude(chosen.threads, signature.stack_bytes, chosen.target.index, units=chosen.target.abilities.units)
    prelude.aligns_words = chosen.target.is_bare
    away = accelerator(chosen.profile) if accelerator is not None else None
    kernels = _kernels(module, plans, signature, prelude, away)
    calls = tuple(kernels[call.kernel].name if call.kernel else "copy" for call in plans[0].calls)
    if any(call.kernel is None for plan in plans for call in plan.calls):
        prelude.headers.add("string.h")
    entries = [
        EntryEmitter(function, plan, own, kernels, prelude, chosen.flush_subnormals, chosen.target.is_bare)
        for function, plan, own in zip(functions, plans, signature.functions, strict=True)
    ]
    texts = _texts(entries, calls, chosen, away)
    return CProgram(
        source=texts.source(chosen.export_kernels),
        header=_of_machine(emit_header(signature, chosen.target, calls, chosen.profile), chosen.target),
        signature=signature,
        weights=tuple(plans[0].slots),
        kernels=calls,
        march=chosen.target.flags,
        profiled=chosen.profile,
        split=texts.split(chosen.export_kernels) if away is None else None,
        companions=away.companions if away is not None else {},
        linked=away.linked if away is not None else None,
        boards=chosen.target.boards,
        steps=tuple(plans[0].steps()),
    )


def _signature(
    module: ModuleOp, functions: Sequence[FuncOp], plans: Sequence[EntryPlan], options: COptions
) -> Signature:
    """The signature of the first function, with those of the others."""
    name = options.name or (module.sym_name.data if module.sym_name is not None else "model")
    stack = max(map(stack_bytes, module.ops), default=0)
    weights = max(plan.weights_bytes for plan in plans)
    taken = {"profile", "weights", "signature", "calls", "set_weights", "weights_address", "ok", "error", "alignment"}
    made: list[Signature] = []
    for function, plan in zip(functions, plans, strict=True):
        own = {"workspace", "memory", "weights", "seconds", "start"}
        structure = function.attributes.get(STRUCTURE)
        made.append(
            Signature(
                name=module_identifier(name),
                inputs=_named(plan.inputs, own),
                outputs=_named(plan.outputs, own),
                sizes=_named(plan.sizes, own),
                workspace_bytes=plan.workspace_bytes,
                weights_bytes=weights,
                msc_version=__version__,
                target=options.target.name,
                threads=options.threads,
                stack_bytes=stack,
                function=function.sym_name.data,
                suffix=_suffix(function, taken),
                structure=structure.data if isinstance(structure, StringAttr) else None,
                features=tuple(sorted(options.target.features)),
                alignment=options.target.align,
                operations=operations_run(module, function),
            )
        )
        taken |= {tensor.c_name for tensor in (*made[-1].inputs, *made[-1].outputs, *made[-1].sizes)}
    return replace(made[0], others=tuple(made[1:]), warnings=warnings_of(module))


def _suffix(function: FuncOp, taken: set[str]) -> str:
    """What a function's name in C has behind the model's: none that begins as another name of the header does."""
    if function.sym_name.data == ENTRY:
        return "run"
    name = unique(identifier(function.sym_name.data, "entry"), {"run", *taken})
    while any(t.lower().startswith(f"{name.lower()}_") or t.lower() == name.lower() for t in taken):
        name = unique(f"{name}_2", taken)
    taken.add(name)
    return name


_Named = TypeVar("_Named", TensorSpec, SizeSpec)


def _named(tensors: Sequence[_Named], taken: set[str]) -> tuple[_Named, ...]:
    """Tensors or sizes with C names, distinct also in capitals, which macros use."""
    named = list[_Named]()
    for tensor in tensors:
        name = unique(identifier(tensor.name, "x"), taken)
        while name.lower() in {t.lower() for t in taken}:
            name = unique(f"{name}_2", taken)
        taken.add(name)
        named.append(replace(tensor, c_name=name))
    return tuple(named)


def _kernels(
    module: ModuleOp, plans: Sequence[EntryPlan], signature: Signature, prelude: Prelude, away: Accelerator | None
) -> dict[str, Kernel]:
    called = {call.kernel for plan in plans for call in plan.calls}
    own = {f"{signature.name}_{word}" for word in ("profile", "weights", "signature", "calls")}
    own |= {function.symbol for function in signature.functions}
    scope = NameScope([own | SYSTEM])
    aliased, given = [plan.aliased() for plan in plans], [plan.given() for plan in plans]
    ways = {
        op: (_positions(op, aliased), _positions(op, given))
        for op in module.ops
        if isinstance(op, FuncOp) and op.sym_name.data in called
    }
    alike = {function: merged for merged in merged_kernels(ways) for function in merged.sizes} if away is None else {}
    shared, kernels = dict[FuncOp, Kernel](), dict[str, Kernel]()
    for function, (overlapping, of_caller) in ways.items():
        merged = alike.get(function)
        if merged is None:
            kernel = emit_kernel(function, scope, overlapping, prelude, of_caller)
        else:
            if merged.function not in shared:
                prelude.plain.add("merged")
                shared[merged.function] = emit_kernel(merged.function, scope, overlapping, prelude, of_caller)
            kernel = emit_caller(function, scope, overlapping, shared[merged.function], merged.sizes[function])
        kernels[function.sym_name.data] = kernel if away is None else away.kernel(function, kernel)
    return kernels


def _positions(function: FuncOp, found: Sequence[Mapping[str, set[int]]]) -> frozenset[int]:
    """The parameters of a function that are found in any entry."""
    return frozenset[int]().union(*(positions.get(function.sym_name.data, ()) for positions in found))


@dataclass(frozen=True)
class _Texts:
    """A program's parts in the order in which they stand in one file; kernels between `opening` and `entries`."""

    opening: str
    prelude: Prelude
    kernels: tuple[Kernel, ...]
    entries: str
    machine: Machine

    def source(self, exported: bool) -> str:
        """All in one file."""
        linkage = "" if exported else "static "
        kernels = kernel_texts(self.kernels, linkage)
        return self._finished(self.opening, self.prelude.team_text("static "), *kernels, self.entries)

    def split(self, exported: bool) -> SplitSource:
        """In pieces for several files, in which what others call is hidden from all else."""
        kernels = "".join(f"{kernel.prototype};\n" for kernel in self.kernels)
        team = sections("team.c")["declaration"] if self.prelude.team else ""
        hidden = _hidden(team if exported else team + kernels)
        return SplitSource(
            self._finished(self.opening, hidden, kernels if exported else ""),
            tuple(map(self._finished, kernel_texts(self.kernels))),
            self._finished(self.prelude.team_text(), self.entries),
        )

    def _finished(self, *parts: str) -> str:
        return _of_machine(_joined(*parts), self.machine)


def _of_machine(text: str, machine: Machine) -> str:
    """C with the type of indices and the alignment of local arrays that a machine has."""
    return text.replace(INDEX_TYPE, f"int{machine.index}_t").replace("_Alignas(64) ", f"_Alignas({machine.align}) ")


def _texts(
    functions: Sequence[EntryEmitter], calls: Sequence[str], options: COptions, away: Accelerator | None
) -> _Texts:
    entry = functions[0]
    signature, prelude = entry.signature, entry.prelude
    if options.profile:
        prelude.headers.add("time.h")
    entries = [
        _weights(signature),
        *(function.run() for function in functions),
        *((*_clock(away), _call_names(signature, calls), entry.profile()) if options.profile else ()),
        "" if options.target.is_bare else f"const char {signature.name}_signature[] =\n{_json_literal(signature)};\n",
    ]
    generated = f"Generated by msc {signature.msc_version} for {signature.target}; see {signature.name}.h."
    opening = [
        f"{c_comment(generated)}\n",
        "#define _GNU_SOURCE /* clocks, threads */\n" if options.profile or prelude.team else "",
        f'#include "{signature.name}.h"\n',
        prelude.text(),
        away.opening if away is not None else "",
    ]
    return _Texts(_joined(*opening), prelude, tuple(entry.kernels.values()), _joined(*entries), options.target)


def _clock(away: Accelerator | None) -> tuple[str, str]:
    """`msc_now` and `msc_lap`."""
    return (PROFILE_CLOCK if away is None else f"static double msc_now(void)\n{{\n{away.clock}}}\n"), PROFILE_LAP


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _hidden(declarations: str) -> str:
    return f"#pragma GCC visibility push(hidden)\n{declarations}#pragma GCC visibility pop\n" if declarations else ""


def _json_literal(signature: Signature) -> str:
    text = signature.to_json()
    pieces = [text[k : k + 90] for k in range(0, len(text), 90)]
    return "\n".join(f"    {c_string(piece)}" for piece in pieces)


def _call_names(signature: Signature, calls: Sequence[str]) -> str:
    items = "".join(f"    {c_string(name)},\n" for name in calls)
    return f"const char *const {signature.name}_calls[] = {{\n{items}    NULL,\n}};\n"


def _weights(signature: Signature) -> str:
    if not signature.weights_bytes:
        return ""
    name, macro = signature.name, signature.name.upper()
    return f"""#ifdef {macro}_EXTERNAL_WEIGHTS
static const unsigned char *external_weights;

int {name}_set_weights(const void *weights)
{{
    if ((uintptr_t)weights % {macro}_ALIGNMENT != 0)
        return {macro}_ERROR_ALIGNMENT;
    external_weights = weights;
    return {macro}_OK;
}}

static const unsigned char *{name}_weights_address(void)
{{
    return external_weights;
}}
#else
static const unsigned char *{name}_weights_address(void)
{{
    return {name}_weights;
}}
#endif
"""
