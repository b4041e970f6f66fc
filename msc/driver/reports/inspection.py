"""What a model, a compiled model or a file of weights holds, as data that prints and serialises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from msc.analysis.bytes import traffic
from msc.analysis.flops import flops
from msc.analysis.kernels import kernels_in
from msc.analysis.repetition import times_run
from msc.dialects.element_types import BYTES, dtype_name
from msc.dialects.gk import KernelOp
from msc.dialects.ms.structure import ParameterOp
from msc.driver.compile import Step, compile_model, generate_c
from msc.driver.models.entry import entry_function
from msc.driver.models.open_tensors import OpenTensor, open_inputs, open_outputs
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.formats.registry import format_of
from msc.runtime.artifact import signature_of
from msc.runtime.program import MemoryStep, Signature, SizeSpec, TensorSpec
from msc.support.diagnostics import DecidedByCall
from msc.support.escaping import shown
from msc.support.wording import size_text


@dataclass(frozen=True)
class Report:
    """What `msc inspect` shows; None where the file does not tell."""

    kind: str
    inputs: tuple[OpenTensor, ...] = ()
    outputs: tuple[OpenTensor, ...] = ()
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, "tuple[int, int]"])
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    parameter_bytes: int | None = None
    operations: Mapping[str, int] = field(default_factory=dict[str, int])
    kernels: int | None = None
    flops: int | None = None
    traffic_bytes: int | None = None
    workspace_bytes: int | None = None
    stack_bytes: int | None = None
    weights_bytes: int | None = None
    target: str | None = None
    threads: int | None = None
    warnings: tuple[str, ...] = ()
    memory: tuple[MemoryStep, ...] = ()
    """What of the workspace is live at each kernel."""
    functions: tuple[str, ...] = ()
    """The entry functions with their types, where there are several."""

    def to_json(self) -> dict[str, object]:
        """All that is known; sizes that calls decide have names, and their ranges stand in `sizes`."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        tensors = {"inputs": [t.to_json() for t in self.inputs], "outputs": [t.to_json() for t in self.outputs]}
        return {**known, **tensors}


def inspect_file(path: str, options: CompileOptions) -> Report:
    """The report of a file by its extension. Raises what reading and compiling it raise."""
    if path.endswith(".so"):
        return _of_signature(signature_of(Path(path)))
    found = format_of(path)
    if found is not None and found.holds == "weights":
        held = found.parameters(Path(path))
        types = {name: type_ for name, (type_, _) in held.items()}
        return Report("weights", parameters=types, parameter_bytes=sum(size for _, size in held.values()))
    return _of_model(path, options)


def _of_signature(signature: Signature) -> Report:
    return Report(
        kind="compiled model",
        inputs=_tensors(signature.inputs, signature.sizes),
        outputs=_tensors(signature.results, signature.sizes),
        sizes={size.name: (size.low, size.high) for size in signature.sizes},
        workspace_bytes=signature.workspace_bytes,
        stack_bytes=signature.stack_bytes,
        weights_bytes=signature.weights_bytes,
        target=signature.target,
        threads=signature.threads,
        warnings=signature.warnings,
        functions=_functions(signature),
    )


def _listed(tensors: Sequence[TensorSpec], signature: Signature) -> str:
    return ", ".join(f"{t.name}: {t.type_text}" for t in _tensors(tensors, signature.sizes))


def _functions(signature: Signature) -> tuple[str, ...]:
    if not signature.others:
        return ()
    return tuple(f"{f.function}({_listed(f.inputs, f)}) -> ({_listed(f.results, f)})" for f in signature.functions)


def _tensors(tensors: Sequence[TensorSpec], sizes: Sequence[SizeSpec]) -> tuple[OpenTensor, ...]:
    names = [size.name for size in sizes]
    return tuple(OpenTensor(t.name, t.dtype, t.named_shape(names), t.codes, t.reals) for t in tensors)


def _of_model(path: str, options: CompileOptions) -> Report:
    """Counts of the model as read, and costs of what it is compiled to, if sizes that it leaves open are given."""
    try:
        model = read_model(path, options)
    except DecidedByCall:
        return Report("model with open sizes", open_inputs(path, options), open_outputs(path, options))
    operations = _operations(model.module)
    parameters = {op.symbol: op for op in model.module.ops if isinstance(op, ParameterOp)}
    costs = dict[str, int]()

    def collect(step: Step, module: ModuleOp) -> None:
        kernels = kernels_in(module)
        if kernels:
            costs.update(kernels=len(kernels), flops=_total(flops, kernels), traffic=_total(traffic, kernels))

    program = generate_c(compile_model(path, options, after_step=collect))
    return replace(
        _of_signature(program.signature),
        memory=program.steps,
        kind=f"model at stage '{model.stage.name}'",
        parameters={name: str(op.type) for name, op in parameters.items()},
        parameter_bytes=sum(map(_parameter_bytes, parameters.values())),
        operations=operations,
        kernels=costs.get("kernels"),
        flops=costs.get("flops"),
        traffic_bytes=costs.get("traffic"),
    )


def _operations(module: ModuleOp) -> dict[str, int]:
    """How often each operation stands in the entry function, most frequent first."""
    counts = Counter(op.name for op in entry_function(module).walk() if op.name.startswith(("ms.", "gk.k", "func.c")))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _parameter_bytes(parameter: ParameterOp) -> int:
    return parameter.type.element_count() * BYTES[dtype_name(parameter.type.element_type) or ""]


def report_text(report: Report) -> str:
    """For people."""
    lines = [f"kind        {report.kind}"]
    lines += [f"{'functions' if i == 0 else '':<12}{shown(text, 1000)}" for i, text in enumerate(report.functions)]
    for title, items in (("inputs", report.inputs), ("outputs", report.outputs)):
        lines += [f"{title if i == 0 else '':<12}{shown(t.name)}: {t.type_text}" for i, t in enumerate(items)]
    if report.sizes:
        lines.append(
            f"{'sizes':<12}{', '.join(f'{shown(n)}={low}..{high}' for n, (low, high) in report.sizes.items())}"
        )
    lines += [
        f"{'operations' if i == 0 else '':<12}{n:>5} {name}" for i, (name, n) in enumerate(report.operations.items())
    ]
    lines += [
        f"{'parameters' if i == 0 else '':<12}{shown(name)}: {type_}"
        for i, (name, type_) in enumerate(report.parameters.items())
    ]
    numbers = (
        ("kernels", None if report.kernels is None else str(report.kernels)),
        ("flops", None if report.flops is None else f"{report.flops:,}"),
        ("traffic", _bytes(report.traffic_bytes)),
        ("parameters", _bytes(report.parameter_bytes)),
        ("weights", _bytes(report.weights_bytes)),
        ("workspace", _bytes(report.workspace_bytes)),
        ("stack", _bytes(report.stack_bytes)),
        ("target", report.target),
        ("threads", None if report.threads is None else str(report.threads)),
    )
    lines += [f"{'warning':<12}{text}" for text in report.warnings]
    return "\n".join([*lines, *(f"{title:<12}{value}" for title, value in numbers if value is not None)])


def _bytes(count: int | None) -> str | None:
    return None if count is None else f"{count:,} bytes ({size_text(count)})" if count >= 1024 else f"{count} bytes"


def _total(cost: Callable[[KernelOp], int], kernels: Sequence[KernelOp]) -> int:
    """The costs of kernels in all their runs; of one run where their number is computed."""
    return sum(cost(kernel) * (times_run(kernel) or 1) for kernel in kernels)
