"""Fuzz the ONNX importer: `python -m tests.fuzz.onnx_models --minutes 10`.

Models of the conformance suite are damaged, in bytes or in structure, and imported. Every answer must be a module or
an MscError, within a time and with a bounded memory. What is not is written to a file, and the run fails.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import numpy as np
from google.protobuf.message import DecodeError
from onnx import AttributeProto, ModelProto

from msc.importers.onnx import import_proto
from msc.ir.verification import verify_module
from msc.support.diagnostics import MscError

MEMORY_BYTES = 4 << 30
SECONDS = 20
_NUMBERS = (0, 1, -1, 2, 7, -8, 255, 1 << 31, 1 << 40, -(1 << 62), (1 << 63) - 1)

Random = np.random.Generator
Mutation = Callable[[ModelProto, Random], None]


def _dimension(model: ModelProto, random: Random) -> None:
    """A size of an input becomes another number."""
    dims = [d for i in model.graph.input for d in i.type.tensor_type.shape.dim]
    if dims:
        dims[int(random.integers(len(dims)))].dim_value = int(random.choice(_NUMBERS))


def _attribute(model: ModelProto, random: Random) -> None:
    """A number of an attribute changes, or the attribute goes."""
    attributes = [(n, a) for n in model.graph.node for a in n.attribute]
    if not attributes:
        return
    node, attribute = attributes[int(random.integers(len(attributes)))]
    value = int(random.choice(_NUMBERS))
    if attribute.type == AttributeProto.INT:
        attribute.i = value
    elif attribute.type == AttributeProto.INTS and attribute.ints:
        attribute.ints[int(random.integers(len(attribute.ints)))] = value
    else:
        node.attribute.remove(attribute)


def _wire(model: ModelProto, random: Random) -> None:
    """A node takes another value, or none."""
    nodes = [n for n in model.graph.node if n.input]
    if nodes:
        node = nodes[int(random.integers(len(nodes)))]
        names = [name for n in model.graph.node for name in (*n.input, *n.output)] + ["", "nowhere"]
        node.input[int(random.integers(len(node.input)))] = names[int(random.integers(len(names)))]


def _operator(model: ModelProto, random: Random) -> None:
    """A node becomes another operator."""
    kinds = (
        "Conv",
        "Reshape",
        "Resize",
        "TopK",
        "LSTM",
        "Einsum",
        "Pad",
        "Loop",
        "GatherND",
        "Range",
        "Expand",
        "Tile",
    )
    model.graph.node[int(random.integers(len(model.graph.node)))].op_type = str(random.choice(kinds))


def _kind(model: ModelProto, random: Random) -> None:
    """An input has another element type."""
    if model.graph.input:
        info = model.graph.input[int(random.integers(len(model.graph.input)))]
        info.type.tensor_type.elem_type = int(random.integers(0, 30))


STRUCTURE: Sequence[Mutation] = (_dimension, _attribute, _wire, _operator, _kind)


def mutated(data: bytes, random: Random) -> ModelProto | None:
    """A damaged model, or None if protobuf refuses it."""
    model = ModelProto()
    in_bytes = random.random() < 0.5
    if in_bytes:
        raw = bytearray(data)
        for place in random.integers(0, len(raw), random.integers(1, 6)):
            raw[place] = random.integers(256)
        data = bytes(raw[: int(random.integers(1, len(raw) + 1))] if random.random() < 0.1 else raw)
    try:
        model.ParseFromString(data)
    except DecodeError:
        return None
    for _ in range(0 if in_bytes else random.integers(1, 4)):
        STRUCTURE[int(random.integers(len(STRUCTURE)))](model, random)
    return model


def answer(model: ModelProto) -> str:
    """What the importer says: `module`, or the code of its error."""
    try:
        verify_module(import_proto(model).module)
    except MscError as error:
        return error.diagnostics[0].code
    return "module"


def _corpus() -> list[bytes]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return [case.model.SerializeToString() for case in collect_testcases(None) if case.model is not None]


@click.command()
@click.option("--minutes", default=10.0, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--out", default="fuzz-findings", show_default=True, type=click.Path(path_type=Path))
def main(minutes: float, seed: int, out: Path) -> None:
    """Damage models and import them until the time is over; exit 1 if one of them found a fault."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, _too_long)
    random, corpus, answers = np.random.default_rng(seed), _corpus(), Counter[str]()
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        model = mutated(corpus[int(random.integers(len(corpus)))], random)
        answers["protobuf refuses it" if model is None else _guarded(model, out)] += 1
    for text, count in answers.most_common():
        click.echo(f"{count:8} {text}")
    sys.exit(1 if any(text.startswith("fault") for text in answers) else 0)


class OutOfTime(BaseException):
    """The importer takes too long; no handler in it shall catch this."""


def _too_long(*_: object) -> None:
    raise OutOfTime(f"more than {SECONDS} s")


def _guarded(model: ModelProto, out: Path) -> str:
    """The answer, or the fault: any other exception, kept with the model that raises it."""
    signal.alarm(SECONDS)
    try:
        return answer(model)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        out.mkdir(exist_ok=True)
        (out / f"{type(error).__name__}-{abs(hash(str(error))) % 10**8}.onnx").write_bytes(model.SerializeToString())
        return f"fault: {type(error).__name__}: {str(error).splitlines()[0][:100] if str(error) else ''}"
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    main()
