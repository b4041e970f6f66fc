"""What networks take of a microcontroller: instructions of a call, RAM, flash and stack, on a board of QEMU.

    python -m benchmarks.microcontroller                              # all networks, on a Cortex-M4
    python -m benchmarks.microcontroller --march cortex-m0plus,cortex-m55 int8/ds_cnn int8/autoencoder

Each network becomes a bundle, whose self-test runs with `-icount shift=0`: an instruction takes a nanosecond of the
board's counter. The self-test also compares the results with the interpreter's, which are TFLM's for int8. Flash is
the code and the constants of the network, and what it calls of libraries, from the linker's map of that program; RAM
is the workspace, variables, and the stack that the self-test finds used. Tensors of the caller are told beside it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.mlperf_tiny import Autoencoder, DsCnn, MobileNetV1, ResNet8
from benchmarks.model import GraphModel
from benchmarks.tflite_graph import Codes, TfliteGraph
from benchmarks.tflite_quantised import quantised
from msc.targets.catalogue import machine_named
from msc.targets.machine import Board

ROOT = Path(__file__).parents[1]
PEERS = {
    ("int8/autoencoder", "cortex-m4"): "CMSIS-NN 0.580 M; TFLM 2,404 B of RAM",
    ("int8/ds_cnn", "cortex-m4"): "CMSIS-NN 7.69 M; TFLM 23,940 B of RAM",
    ("int8/resnet8", "cortex-m4"): "CMSIS-NN 29.9 M; TFLM 54,932 B of RAM",
    ("int8/mobilenetv1-0.25", "cortex-m4"): "CMSIS-NN 24.1 M; TFLM 100,676 B of RAM",
    ("int8/autoencoder", "cortex-m55"): "CMSIS-NN 0.147 M",
    ("int8/ds_cnn", "cortex-m55"): "CMSIS-NN 1.81 M",
    ("int8/resnet8", "cortex-m55"): "CMSIS-NN 4.91 M",
    ("int8/mobilenetv1-0.25", "cortex-m55"): "CMSIS-NN 6.55 M",
    ("int8/autoencoder", "cortex-m0plus"): "CMSIS-NN 1.76 M",
    ("int8/ds_cnn", "cortex-m0plus"): "CMSIS-NN 29.0 M",
    ("int8/resnet8", "cortex-m0plus"): "CMSIS-NN 97.5 M",
    ("f32/autoencoder", "cortex-m4"): "onnx2c 1.34 M, 1,024 B of RAM",
    ("f32/ds_cnn", "cortex-m4"): "onnx2c 25.0 M, 64,000 B of RAM",
    ("f32/resnet8", "cortex-m4"): "onnx2c 236 M, 196,608 B of RAM",
    ("f32/mobilenetv1-0.25", "cortex-m4"): "onnx2c 69.0 M, 294,912 B of RAM",
}
"""Of peers, built with GCC 12.2, -O2, for the same boards."""


def gesture() -> bytes:
    """Three axes of 32 samples to six gestures: two convolutions with pooling, and a dense layer, in int8."""
    graph, draw = TfliteGraph(), np.random.default_rng(1)
    x, channels, length = graph.input("samples", (1, 1, 32, 3), Codes(0.02, 3)), 3, 32
    for outputs in (8, 16):
        scales = tuple(map(float, draw.uniform(0.004, 0.006, outputs).astype(np.float32)))
        weight = graph.constant(
            draw.integers(-127, 128, (outputs, 1, 3, channels)).astype(np.int8), Codes(scales, 0, "int8", 0)
        )
        bias = graph.constant(draw.integers(-900, 900, outputs).astype(np.int32), Codes(0.02 * 0.005, 0, "int32"))
        sizes = {"Padding": 0, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": 1}
        x = graph.op("CONV_2D", [x, weight, bias], (1, 1, length, outputs), Codes(0.02, -128), ("Conv2DOptions", sizes))
        pool = {"Padding": 1, "StrideH": 1, "StrideW": 2, "FilterHeight": 1, "FilterWidth": 2}
        channels, length = outputs, length // 2
        x = graph.op("MAX_POOL_2D", [x], (1, 1, length, channels), Codes(0.02, -128), ("Pool2DOptions", pool))
    shape = graph.constant(np.array((1, 128), np.int32))
    x = graph.op("RESHAPE", [x, shape], (1, 128), Codes(0.02, -128))
    weight = graph.constant(draw.integers(-127, 128, (6, 128)).astype(np.int8), Codes(0.005, 0, "int8"))
    bias = graph.constant(draw.integers(-900, 900, 6).astype(np.int32), Codes(0.0001, 0, "int32"))
    return graph.bytes([graph.op("FULLY_CONNECTED", [x, weight, bias], (1, 6), Codes(0.1, 0))])


def _networks() -> dict[str, Callable[[Path], Path]]:
    """How each network becomes a file in a folder."""

    def float_(model: GraphModel) -> Callable[[Path], Path]:
        return lambda folder: model.onnx

    def written(data: Callable[[], bytes]) -> Callable[[Path], Path]:
        def write(folder: Path) -> Path:
            (folder / "net.tflite").write_bytes(data())
            return folder / "net.tflite"

        return write

    models = [kind() for kind in (Autoencoder, DsCnn, ResNet8, MobileNetV1)]
    return {
        **{f"f32/{model.name}": float_(model) for model in models},
        "f32/lenet5": lambda folder: ROOT / "samples" / "lenet5" / "lenet5.mir",
        **{f"int8/{model.name}": written(lambda model=model: quantised(model)) for model in models},
        "int8/gesture": written(gesture),
    }


NETWORKS = _networks()


@dataclass(frozen=True)
class Footprint:
    """What a network takes: instructions of a call, bytes of RAM with the stack in it, of flash, of the caller."""

    instructions: int
    ram: int
    stack: int
    flash: int
    weights: int
    tensors: int
    said: int
    """Bytes of RAM that the header states."""


def footprint(network: str, march: str, folder: Path, options: Sequence[str] = ()) -> Footprint:
    """Compile, build and run a network. Raises CalledProcessError where a step fails, a wrong result among them."""
    bundle, board = folder / "net.bundle", machine_named(march).boards[0]
    words = ["compile", str(NETWORKS[network](folder)), "--march", march, "-o", str(bundle), "--name", "net", *options]
    subprocess.run([sys.executable, "-m", "msc.driver", *words], check=True, capture_output=True)
    printed = subprocess.run(["make", "-C", bundle, "run"], check=True, capture_output=True, text=True).stdout
    header = (bundle / "net.h").read_text("utf-8")
    sizes = {name: int(size) for name, size in re.findall(r"#define NET_(\w+)_BYTES (\d+)", header)}
    own = ("WORKSPACE", "WEIGHTS", "STACK", "CODE")
    (ticks,), (stack,) = re.findall(r"^ticks (\d+)$", printed, re.M), re.findall(r"^stack (\d+)$", printed, re.M)
    flash, variables = linked((bundle / "selftest.map").read_text("utf-8"))
    return Footprint(
        round(int(ticks) * board.tick),
        sizes["WORKSPACE"] + variables + int(stack),
        int(stack),
        flash,
        sizes["WEIGHTS"],
        sum(size for name, size in sizes.items() if name not in own),
        sizes["WORKSPACE"] + sizes["STACK"],
    )


_PLACED = re.compile(r"^ \.(\w+)\S*\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+(\S+)$", re.M)


def linked(text: str) -> tuple[int, int]:
    """Bytes of flash and of variables of the network and the libraries, of a linker's map."""
    flash = variables = 0
    for section, size, file in _PLACED.findall(text[text.index("Linker script and memory map") :]):
        if Path(file).name in ("net.o", "net_weights.o") or ".a(" in file:
            flash += int(size, 16) * (section in ("text", "rodata", "data", "srodata", "sdata"))
            variables += int(size, 16) * (section in ("data", "bss", "sdata", "sbss"))
    return flash, variables


def _flags(board: Board, march: str) -> str:
    from msc.runtime.flags import FIRMWARE_FLAGS

    return " ".join((board.compiler, *machine_named(march).flags, *board.linked, *FIRMWARE_FLAGS))


def main() -> None:
    """Print a row for each network and machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)}; default: all")
    parser.add_argument("--march", default="cortex-m4", help="machines, separated by commas")
    arguments = parser.parse_args()
    wrong = [name for name in arguments.networks if name not in NETWORKS]
    if wrong:
        parser.error(f"there is no network {wrong[0]}; there are {', '.join(NETWORKS)}")
    for march in arguments.march.split(","):
        print(f"{march}: {_flags(machine_named(march).boards[0], march)}")
        head = ("network", "M instr.", "RAM", "of it stack", "header says", "flash", "beyond weights", "caller")
        print("{:<22}{:>10}{:>9}{:>13}{:>13}{:>11}{:>16}{:>9}".format(*head))
        for network in arguments.networks or NETWORKS:
            with tempfile.TemporaryDirectory() as folder:
                found = footprint(network, march, Path(folder))
            print(
                f"{network:<22}{found.instructions / 1e6:>10.3f}{found.ram:>9}{found.stack:>13}{found.said:>13}"
                f"{found.flash:>11}{found.flash - found.weights:>16}{found.tensors:>9}  "
                f"{PEERS.get((network, march), '')}",
                flush=True,
            )


if __name__ == "__main__":
    main()
