"""One random model: compiled for its range, called at sizes of it, compared with ONNX Runtime and the interpreter."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto

import msc
from msc.driver.artifacts.model_on_call import ModelOnCall
from msc.driver.models.interpretation import interpret
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.runtime.artifact import CompiledModel
from msc.support.diagnostics import MscError
from tests.open_sizes.graphs import Graph, arrays_of, model_of, random_graph
from tests.open_sizes.operators import OPERATORS

Array: TypeAlias = NDArray[Any]
Verdict: TypeAlias = Literal["right", "wrong", "internal", "refused", "on call", "not a model"]
"""`on call`: right, by a compilation for each combination of sizes that is called."""

HIGHEST = {"n": 7, "m": 5}
SIZES = ({"n": 1, "m": 1}, {"n": 7, "m": 5}, {"n": 2, "m": 4}, {"n": 5, "m": 3})


@dataclass(frozen=True)
class Outcome:
    """What came of a model: of a refusal, or of a compilation on call, the reason; of the rest, what was wrong."""

    seed: int
    verdict: Verdict
    text: str = ""


def try_seed(seed: int, nodes: int = 4, operators: Sequence[Callable[[Graph], None]] = OPERATORS) -> Outcome:
    """Make a model of some operators, compile it, call it."""
    graph = random_graph(seed, operators, nodes)
    with tempfile.TemporaryDirectory(prefix="msc-open-") as folder:
        path = Path(folder) / "model.onnx"
        model = model_of(graph)
        path.write_bytes(model.SerializeToString())
        try:
            expected = [_runtime(model, arrays_of(graph, sizes, seed)) for sizes in SIZES]
        except (Exception, SystemExit) as error:  # of whatever kind: ONNX Runtime takes no such model
            return Outcome(seed, "not a model", str(error)[:200])
        return _tried(seed, path, graph, expected)


def _runtime(model: ModelProto, arrays: Mapping[str, Array]) -> list[Array]:
    runtime = cast(Any, onnxruntime)  # its stubs are partly untyped
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return cast("list[Array]", session.run(None, dict(arrays)))


def _tried(seed: int, path: Path, graph: Graph, expected: Sequence[Sequence[Array]]) -> Outcome:
    used = {k for x in graph.inputs for d in x.shape for k in ("n", "m") if getattr(d, k)}
    dims = {name: (1, HIGHEST[name]) for name in used}
    try:
        function = msc.compile(path, dims=dims, use_cache=False)
        on_call = isinstance(function, ModelOnCall)
        refusal = str(function.reason).partition("\n")[0] if isinstance(function, ModelOnCall) else ""
        for sizes, wanted in zip(SIZES, expected, strict=True):
            wrong = _difference(function, path, arrays_of(graph, sizes, seed), wanted)
            if wrong:
                return Outcome(seed, "wrong", f"at {sizes}: {wrong}")
    except MscError as error:
        code = error.diagnostics[0].code
        return Outcome(seed, "internal" if code.startswith("MSC09") else "refused", str(error))
    except (Exception, SystemExit) as error:  # whatever it is, it is a bug
        return Outcome(seed, "internal", f"{type(error).__name__}: {error}")
    return Outcome(seed, "on call" if on_call else "right", refusal)


def _difference(function: CompiledModel, path: Path, arrays: Mapping[str, Array], wanted: Sequence[Array]) -> str:
    """How the outputs differ from both references; "" where they agree with one."""
    got = function.results(*arrays.values())
    problem = compared(got, wanted)
    if not problem:
        return ""
    shapes = {name: array.shape for name, array in arrays.items()}
    by_meaning = interpret(read_model(str(path), CompileOptions(shapes=shapes)), tuple(arrays.values()))
    return "" if not compared(got, by_meaning) else problem


def compared(got: Sequence[Array], wanted: Sequence[Array]) -> str:
    """The first difference in shape, type or values; "" for none."""
    for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {number} is {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
        if not np.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True):
            return f"output {number} differs: {a.reshape(-1)[:8]} instead of {b.reshape(-1)[:8]}"
    return ""
