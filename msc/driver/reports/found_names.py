"""Operations, functions, layers and operators of formats by any of the names that people know.

Names are compared without their modules, cases and underscores: `torch.nn.functional.log_softmax`, `P.LogSoftmax`,
`LogSoftmax` and `ms.log_softmax` are one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

from msc.driver.reports.operation_reference import operation_names
from msc.formats.registry import FORMATS
from msc.support.diagnostics import MscError
from msc.support.torch_names import TORCH_NAMES

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
