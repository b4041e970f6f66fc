"""Why a model became the kernels that it became: decisions of clustering and scheduling, kernel by kernel."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation
from xdsl.utils.hints import isa

from msc.analysis.bytes import bytes_read, bytes_written
from msc.analysis.flops import flops
from msc.dialects.gk import KernelOp
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.structure import ConstantOp
from msc.driver.compile import Step, compile_model
from msc.driver.options import CompileOptions
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

_COLLECT_AFTER = "convert-gk-to-loop"
"""The pass after which kernels carry everything: what they were fused of, their schedule, their function."""


@dataclass(frozen=True)
class KernelExplanation:
    """One kernel: what it is made of, why, how it is scheduled, what it costs."""

    function: str
    label: str
    pattern: str
    operations: tuple[str, ...]
    fusion: tuple[str, ...]
    schedule: tuple[str, ...]
    schedule_reasons: tuple[str, ...]
    flops: int
    bytes_read: int
    bytes_written: int


def explain_model(model: str, options: CompileOptions, kernel: str | None = None) -> tuple[KernelExplanation, ...]:
    """All kernels in the order of execution, or those whose function or label is `kernel`. Raises MSC0009."""
    found = list[KernelExplanation]()

    def collect(step: Step, module: ModuleOp) -> None:
        if step.name == _COLLECT_AFTER:
            found.extend(_explain(op) for op in module.walk() if isinstance(op, KernelOp))

    compile_model(model, options, "loop", after_step=collect)
    chosen = [k for k in found if kernel is None or kernel in (k.function, k.label)]
    if not chosen:
        names = {name for k in found for name in (k.function, k.label)}
        about = f"the model has no kernel '{kernel}'" if found else "the model is past the stage that tells of kernels"
        help_line = did_you_mean(kernel or "", names) or (f"its kernels: {', '.join(sorted(names))}" if names else None)
        raise MscError(Diagnostic("MSC0009", about, help=help_line))
    return tuple(chosen)


def _explain(kernel: KernelOp) -> KernelExplanation:
    function, pattern = kernel.attributes.get("gk.function"), kernel.attributes.get("gk.pattern")
    return KernelExplanation(
        function=function.string_value() if isinstance(function, SymbolRefAttr) else "",
        label=kernel.label.data,
        pattern=pattern.data if isinstance(pattern, StringAttr) else "",
        operations=tuple(_origin(op) for op in kernel.body.block.ops if _computes(op)),
        fusion=_strings(kernel, "gk.reasons"),
        schedule=_strings(kernel, "gk.schedule"),
        schedule_reasons=_strings(kernel, "gk.schedule_reasons"),
        flops=flops(kernel),
        bytes_read=bytes_read(kernel),
        bytes_written=bytes_written(kernel),
    )


def _computes(op: Operation) -> bool:
    return isinstance(op, MsOp) and not isinstance(op, ConstantOp)


def _origin(op: Operation) -> str:
    place = source_location(op)
    return f"{op.name} at {place}" if place is not None else op.name


def _strings(op: Operation, name: str) -> tuple[str, ...]:
    attribute = op.attributes.get(name)
    return tuple(item.data for item in attribute) if isa(attribute, ArrayAttr[StringAttr]) else ()


def explanation_text(kernels: tuple[KernelExplanation, ...]) -> str:
    """For people: a paragraph a kernel."""
    return "\n\n".join(map(_paragraph, kernels))


def _paragraph(kernel: KernelExplanation) -> str:
    intensity = kernel.flops / max(1, kernel.bytes_read + kernel.bytes_written)
    costs = f"{kernel.flops} flops, {kernel.bytes_read} bytes in, {kernel.bytes_written} bytes out"
    lines = [f"{kernel.function or kernel.label} ({kernel.pattern}): {costs}, {intensity:.2f} flops a byte"]
    sections = (
        ("made of", kernel.operations),
        ("fusion", kernel.fusion),
        ("schedule", kernel.schedule),
        ("because", kernel.schedule_reasons),
    )
    for title, items in sections:
        lines += [f"  {title if i == 0 else '':<9} {item}" for i, item in enumerate(items)]
    return "\n".join(lines)
