"""`msc explain`: what a code means, how an operation is written, or why a model became the kernels that it became."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from msc.driver.options import CompileOptions
from msc.driver.reports.operation_reference import operation_names
from msc.driver.verbs.completion import subjects, words_or_files
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import Verb, say
from msc.formats.registry import FORMATS
from msc.support.codes import CODES
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.torch_names import TORCH_NAMES

_OPERATION = re.compile(r"ms(\.\w+)?")
_NAME = re.compile(r"(?!MSC\d)[A-Za-z_]\w*(\.\w+)*", re.IGNORECASE)
_FILES = (".so", ".toml")
_CODE = re.compile(r"(MSC)?\w{0,8}", re.IGNORECASE)


@click.command(name="explain", cls=Verb)
@click.argument("subject", metavar="MODEL|CODE|OPERATION", required=False, shell_complete=words_or_files(subjects))
@click.option("--kernel", metavar="NAME", help="Only the kernel of this label or function name.")
@click.option("--measured", metavar="FILE", help="Show times beside it, of msc bench --kernels --json.")
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON.")
@with_compile_options
def command(
    subject: str | None, kernel: str | None, measured: str | None, as_json: bool, options: CompileOptions
) -> None:
    """Explain CODE, OPERATION, or each kernel of MODEL: what was fused, why, its schedule and its time.

    Alone: list all codes; ms: list all operations.

    Example: msc explain MSC0201, msc explain ms.conv2d, or msc explain lenet5.mir --kernel conv2d_relu
    """
    if subject is None:
        say("\n".join(f"{entry.code}  {entry.title}" for entry in CODES.values()))
    elif _OPERATION.fullmatch(subject) and not Path(subject).exists():
        say(_explain_operation(subject, as_json))
    elif _CODE.fullmatch(subject) and any(map(str.isdigit, subject)) and not _NAME.fullmatch(subject):
        say(explain_code(subject, as_json=as_json))
    elif _NAME.fullmatch(subject) and not Path(subject).exists() and not _is_file(subject):
        say(_explain_name(subject, as_json))
    else:
        _explain_model(subject, kernel, measured, as_json, options)


def _is_file(subject: str) -> bool:
    """Whether a subject is a file by its name."""
    from msc.formats.registry import format_of

    return subject.endswith(_FILES) or format_of(subject) is not None


def _explain_operation(name: str, as_json: bool) -> str:
    from msc.driver.reports.operation_pages import overview, terminal_text
    from msc.driver.reports.operation_reference import operation_names, reference

    if name == "ms":
        return json.dumps([asdict(reference(each)) for each in operation_names()]) if as_json else overview()
    return json.dumps(asdict(reference(name))) if as_json else terminal_text(reference(name))


def _explain_name(name: str, as_json: bool) -> str:
    """An operation, function, layer or operator by any name. Raises MSC0005 where there is none."""
    found = meanings(name)
    if not found:
        kinds = "a code is written MSC0201, an operation ms.conv2d, a model as the name of its file, net.mir"
        what = f"there is no code, operation, function or layer '{name}'"
        near = did_you_mean(name, near_names())
        raise MscError(Diagnostic("MSC0005", what, help=kinds if near is None else f"{near} {kinds}"))
    operation = found.pop("ms", None)
    if as_json:
        return json.dumps({"operation": operation and json.loads(_explain_operation(operation, True)), **found})
    parts = [f"{text}" for text in found.values()]
    return "\n\n".join(([_explain_operation(operation, False)] if operation else []) + parts)


def _explain_model(
    model: str, kernel: str | None, measured: str | None, as_json: bool, options: CompileOptions
) -> None:
    from msc.driver.reports.explanations import explain_model, explanation_text
    from msc.driver.reports.kernel_rates import MeasuredKernels

    times = MeasuredKernels.read(Path(measured)) if measured is not None else None
    kernels = explain_model(model, options, kernel, times)
    say(json.dumps([asdict(k) for k in kernels]) if as_json else explanation_text(kernels))


def explain_code(code: str, *, as_json: bool = False) -> str:
    """Title and explanation of a code, in any case, with or without `MSC`. Raises MSC0005 when there is none."""
    name = code.upper() if code.upper().startswith("MSC") else f"MSC{code.zfill(4)}"
    if name not in CODES:
        kinds = "a code is written MSC0201, an operation ms.conv2d, a model as the name of its file, net.mir"
        help_ = (did_you_mean(name, CODES) if any(map(str.isdigit, code)) else None) or kinds
        raise MscError(Diagnostic("MSC0005", f"there is no code '{code}'", help=help_))
    entry = CODES[name]
    if as_json:
        return json.dumps(asdict(entry))
    return f"{entry.code}: {entry.title}\n\n{click.wrap_text(entry.explanation, 88)}"


# Operations, functions, layers and operators of formats by any of the names that people know.
#
# Names are compared without their modules, cases and underscores: `torch.nn.functional.log_softmax`, `P.LogSoftmax`,
# `LogSoftmax` and `ms.log_softmax` are one.
_MODULES = ("msc.ops", "msc.nn", "msc", "msc.train.callback", "msc.dataset", "msc.dataset.vision")
_SAME = {
    "linear": "dense", "gemm": "dense", "fullyconnected": "dense", "innerproduct": "dense", "conv": "conv2d",
    "cat": "concat", "concatenate": "concat", "permute": "transpose", "mm": "matmul", "bmm": "batchmatmul",
    "averagepool": "avgpool", "view": "reshape",
}  # fmt: skip
"""A name elsewhere -> the operation here, both as `_plain` has them."""


def meanings(name: str) -> dict[str, str]:
    """What there is of a name: "ms", the name of an operation; for others where it is -> what to print of it."""
    plain = _plain(name)
    found: dict[str, str] = {}
    operations = {_plain(each): each for each in operation_names()}
    operation = operations.get(plain) or operations.get(_SAME.get(plain, ""))
    if operation is not None:
        found["ms"] = operation
    for module, attribute in _public():
        if _plain(attribute) == plain:
            found.setdefault(f"{module}.{attribute}", _described(module, attribute))
    for each in FORMATS.found():
        owner = each.title.split(" ")[1]
        with suppress(MscError):  # its package is not installed
            for operator in each.operators():
                if _plain(operator) == plain:
                    found[each.name] = f"{owner}'s {operator}: msc reads it"
    torch = next((advice for each, advice in TORCH_NAMES.items() if each == name.rpartition(".")[2]), None)
    if torch is not None:
        found["torch"] = f"PyTorch's {name.rpartition('.')[2]}: {torch}"
    return found


def near_names() -> list[str]:
    """All names, for what is like one."""
    return [*operation_names(), *dict.fromkeys(attribute for _, attribute in _public())]


def _plain(name: str) -> str:
    return name.rpartition(".")[2].replace("_", "").lower()


def _public() -> Iterator[tuple[str, str]]:
    for module in _MODULES:
        yield from ((module, name) for name in import_module(module).__all__)


def _described(module: str, name: str) -> str:
    """How it is called, and the first paragraph of what it says of itself."""
    value: Any = getattr(import_module(module), name)
    try:
        empty = inspect.Signature.empty
        signature = inspect.signature(value)
        parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
        form = str(signature.replace(parameters=parameters, return_annotation=empty))
    except (TypeError, ValueError):
        form = ""
    text = inspect.getdoc(value) or ""
    return f"{module}.{name}{form}\n\n{text.partition(chr(10) * 2)[0]}".rstrip()
