"""Peak memory of compiling a large ONNX model: `python -m tests.import_memory --megabytes 350`.

The model is a chain of matrix products, its weights inside the file or beside it. It is compiled in a process of its
own; what counts is the largest resident size of that process, mapped files included, and of those that it starts.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import click
import numpy as np
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

WIDTH = 2048
LIMIT = 3.0
"""Peak memory, in sizes of the model."""


def write_model(folder: Path, megabytes: int, external: bool) -> Path:
    """A model of about `megabytes`, written without ever being in memory twice."""
    count = max(1, megabytes * 1_000_000 // (WIDTH * WIDTH * 4))
    random = np.random.default_rng(0)
    weights: list[TensorProto] = []
    with (folder / "weights.bin").open("wb") as file:
        for number in range(count):
            data = (random.standard_normal((WIDTH, WIDTH), np.float32) / 64).tobytes()
            weights.append(_weight(f"w{number}", data, file.tell() if external else None))
            if external:
                file.write(data)
    path = folder / "model.onnx"
    path.write_bytes(_model(weights).SerializeToString())
    return path


def _weight(name: str, data: bytes, offset: int | None) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH])
    if offset is None:
        tensor.raw_data = data
        return tensor
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", offset), ("length", len(data))):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _model(weights: list[TensorProto]) -> ModelProto:
    values = ["x", *(f"y{number}" for number in range(len(weights)))]
    nodes = [make_node("MatMul", [values[i], w.name], [values[i + 1]]) for i, w in enumerate(weights)]
    ends = [make_tensor_value_info(name, TensorProto.FLOAT, [8, WIDTH]) for name in (values[0], values[-1])]
    graph = make_graph(nodes, "large", ends[:1], ends[1:], weights)
    return make_model(graph, opset_imports=[make_opsetid("", 17)])


def measure(path: Path) -> tuple[float, float]:
    """Peak resident megabytes of compiling a model: of msc, and of the largest process that it starts."""
    code = (
        "import atexit, re, resource\n"
        "def report():\n"
        "    own = re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]\n"
        "    print(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "atexit.register(report)\n"
        "from msc.driver.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code, "compile", str(path), "-o", str(path.with_suffix(".so")), "--no-cache"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    own, children = map(int, result.stdout.split()[-2:])
    return own * 1024 / 1e6, children * 1024 / 1e6


@click.command()
@click.option("--megabytes", default=350, show_default=True, type=click.IntRange(17))
def main(megabytes: int) -> None:
    """Measure both kinds of file; exit 1 if one takes more than three times its size."""
    too_much = False
    for external in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            path = write_model(Path(folder), megabytes, external)
            size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
            own, children = measure(path)
        ratio = max(own, children) / size
        too_much |= ratio > LIMIT
        kind = "external data" if external else "weights inside"
        click.echo(
            f"{kind}: {size:.0f} MB; msc {own:.0f} MB, its children {children:.0f} MB: {ratio:.2f} times the model"
        )
    sys.exit(1 if too_much else 0)


if __name__ == "__main__":
    main()
