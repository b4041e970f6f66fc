"""`msc verify --against onnxruntime`: a compiled ONNX model and ONNX Runtime on the same inputs.

Where an output diverges, both run again with every value between the nodes as an output, and the first node is named
whose value does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from msc.dialects.arrays import Array
from msc.driver.artifacts.in_memory import compile_imported
from msc.driver.artifacts.libraries import library_of
from msc.driver.artifacts.model_on_call import made_for
from msc.driver.models.model_inputs import choose_inputs
from msc.driver.models.model_outputs import largest_error
from msc.driver.models.onnx_models import array_of, check_onnx, is_onnx
from msc.driver.options import CompileOptions, InputValue
from msc.driver.verification.differential import AGREES, DIVERGES, Check, Settings
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.progress import progress
from msc.support.progress import step as progress_step

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

RUNTIME = "onnxruntime"

_REASON = 200
"""Characters of ONNX Runtime's messages, whose ends tell more than the functions that they begin with."""


@progress()
def verify_against_runtime(model: str, options: CompileOptions, settings: Settings) -> tuple[Check, ...]:
    """The outputs in order; behind one that diverges, the first node that does, if it still does.

    Raises MSC0008 for a model that is not ONNX, MSC0717 without the packages, MSC0721 where ONNX Runtime fails, and
    what compiling raises.
    """
    if not is_onnx(model):
        help_ = "without --against, a model of any stage is compared with the interpreter"
        raise MscError(Diagnostic("MSC0008", f"--against {RUNTIME} takes an ONNX model, not '{model}'", help=help_))
    check_onnx()
    if find_spec(RUNTIME) is None:
        message = f"comparing with ONNX Runtime needs the package '{RUNTIME}'"
        raise MscError(Diagnostic("MSC0717", message, help=f"pip install {RUNTIME}"))
    return _Comparison(model, options, settings).checks()


class _Comparison:
    def __init__(self, model: str, options: CompileOptions, settings: Settings) -> None:
        from msc.importers.onnx.reading.model_file import read_model

        self._path, self._settings = Path(model), settings
        progress_step("compiling")
        (self._options, self._compiled), taken = made_for(
            options, settings.given, lambda o: (o, library_of(model, o).load())
        )
        inputs = self._compiled.signature.inputs
        arrays = choose_inputs(inputs, taken, settings.seed)
        self._inputs = {t.name: array for t, array in zip(inputs, arrays, strict=True)}
        self._model = read_model(self._path)
        self._values = _values(self._model.graph, self._options)

    def checks(self) -> tuple[Check, ...]:
        """See `verify_against_runtime`."""
        names = [info.name for info in self._model.graph.output]
        found = self._compiled.results(*self._inputs.values())
        checks = list(self._compared(names, "output", found, self._expected(self._model)))
        if checks[-1].diverges and (first := self._first_node()) is not None:
            checks.append(first)
        return tuple(checks)

    def _compared(
        self, names: Sequence[str], what: str, found: Sequence[Array], expected: Sequence[Array]
    ) -> Iterator[Check]:
        """The checks up to the first that diverges."""
        for name, got, wanted in zip(names, found, expected, strict=True):
            error = largest_error(got, wanted)
            agrees = self._settings.tolerance.scaled(wanted).agree(got, wanted)
            detail = "" if agrees or (got.shape, got.dtype) == (wanted.shape, wanted.dtype) else _kinds(got, wanted)
            yield Check("so", RUNTIME, f"{what} {name}", AGREES if agrees else DIVERGES, error, detail)
            if not agrees:
                return

    def _first_node(self) -> Check | None:
        """The first node whose value diverges when all are outputs."""
        from msc.importers.onnx import import_proto
        from msc.importers.onnx.node import node_label

        progress_step("values between the nodes")
        marked, labels = _marked(self._model), dict[str, str]()
        for node in self._model.graph.node:
            labels |= dict.fromkeys(node.output, node_label(node))
        names = [info.name for info in marked.graph.output]
        with suppress(MscError):  # a value between may be none that msc or ONNX Runtime gives: a sequence, for one
            imported = import_proto(
                marked,
                str(self._path),
                dims=self._options.largest_dims,
                input_values=self._values,
                shapes=self._options.shapes,
                folder=self._path.parent,
            )
            found = compile_imported(imported, str(self._path), self._options)(self._inputs)
            for check in self._compared(names, "value", found, self._expected(marked)):
                if check.diverges:
                    name = check.subject.removeprefix("value ")
                    detail = "; ".join(filter(None, (f"it is the first: of {labels.get(name, name)}", check.detail)))
                    return replace(check, detail=detail)
        return None

    def _expected(self, model: ModelProto) -> list[Array]:
        """What ONNX Runtime gives, without its optimisations. Raises MSC0721."""
        import onnxruntime

        runtime = cast(Any, onnxruntime)  # its stubs are partly untyped
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        progress_step("ONNX Runtime")
        try:
            text = str(self._path) if model is self._model else _whole(model, self._path)
            session = runtime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
            taken = {info.name for info in session.get_inputs()}
            feed = {n: a for n, a in {**self._inputs, **self._values}.items() if n in taken}
            return [np.asarray(value) for value in session.run(None, feed)]
        except _failures() as error:
            reason = str(error).strip().partition("\n")[0]
            reason = reason if len(reason) <= _REASON else f"...{reason[-_REASON:]}"
            raise MscError(Diagnostic("MSC0721", f"ONNX Runtime does not run '{self._path}': {reason}")) from error


def _failures() -> tuple[type[Exception], ...]:
    """The exceptions of ONNX Runtime, which have no base of their own."""
    state: Mapping[str, object] = vars(import_module("onnxruntime.capi.onnxruntime_pybind11_state"))
    found = [value for value in state.values() if isinstance(value, type) and issubclass(value, Exception)]
    return (*found, ValueError, TypeError)


def _values(graph: GraphProto, options: CompileOptions) -> Mapping[str, Array]:
    """The inputs that the options fix."""
    from msc.importers.onnx.reading.written_values import written_values

    texts = {name: value for name, value in options.input_values.items() if isinstance(value, str)}
    arrays = {n: array_of(value) for n, value in options.input_values.items() if isinstance(value, InputValue)}
    return {**written_values(graph, texts), **arrays}


def _marked(model: ModelProto) -> ModelProto:
    """The model with every value of its graph as an output, in order."""
    from onnx import ModelProto, ValueInfoProto

    marked = ModelProto()
    marked.CopyFrom(model)
    names = dict.fromkeys(name for node in marked.graph.node for name in node.output if name)
    del marked.graph.output[:]
    marked.graph.output.extend(ValueInfoProto(name=name) for name in names)
    return marked


def _whole(model: ModelProto, path: Path) -> bytes:
    """The model's bytes, with its external data inside."""
    from onnx.external_data_helper import load_external_data_for_model

    load_external_data_for_model(model, str(path.parent))
    return model.SerializeToString()


def _kinds(got: Array, wanted: Array) -> str:
    return f"{got.dtype}{list(got.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
