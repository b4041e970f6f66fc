"""The same functions in graph mode: their text becomes a module, since graph mode reads Python source."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msc
from msc import Tensor
from tests.special_gradients.cases import Case
from tests.special_gradients.evaluating import NAMES, Derivatives, arguments, variables_of

_HEAD = """
import msc
from msc import Tensor, nn, ops
from tests.special_gradients.evaluating import typed, weighted
mnp = msc.numpy
"""


def compiled(text: str, case: Case, dtype: str) -> Derivatives:
    """The value and the derivatives of one function, of a compiled graph."""
    return compiled_together([(text, case)], dtype)[0]


def compiled_together(functions: Sequence[tuple[str, Case]], dtype: str) -> list[Derivatives]:
    """Those of several functions, of one compiled graph."""
    tensors = [[Tensor(a) for a in arguments(case, dtype)] for _, case in functions]
    with TemporaryDirectory() as folder:
        module = _module(_source(functions), Path(folder))
        results: Any = msc.jit(module.all_of)(*(t for part in tensors for t in part))
    found = [r.asnumpy() for r in results]
    made: list[Derivatives] = []
    for _, case in functions:
        count = len(variables_of(case))
        value, first, second = found[0], found[1 : count + 1], found[count + 1 : 2 * count + 1]
        made.append(Derivatives(value, first, second))
        found = found[2 * count + 1 :]
    return made


def _source(functions: Sequence[tuple[str, Case]]) -> str:
    lines, parts, formal = [_HEAD], [""], [""]
    for k, (text, case) in enumerate(functions):
        names = ", ".join(NAMES[: len(case.inputs)])
        given = [f"x{k}_{i}" for i in range(len(case.inputs))]
        wanted = variables_of(case)
        lines.append(
            f"def value_{k}({names}):\n    return {text}\n"
            f"def total_{k}({names}):\n    return weighted(value_{k}({names}))\n"
            f"def first_{k}({names}):\n    return msc.grad(total_{k}, {wanted})({names})\n"
            f"def again_{k}({names}):\n    return weighted(first_{k}({names}))\n"
        )
        call = ", ".join(given)
        formal += given
        parts.append(
            f"    v{k}, f{k}, s{k} = value_{k}({call}), first_{k}({call}), msc.grad(again_{k}, {wanted})({call})"
        )
    results = " + ".join(f"(v{k},) + f{k} + s{k}" for k in range(len(functions)))
    return "\n".join([*lines, f"def all_of({', '.join(formal[1:])}):", *parts[1:], f"    return {results}", ""])


def _module(source: str, folder: Path) -> Any:
    name = f"special_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    path = folder / f"{name}.py"
    path.write_text(source, "utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
