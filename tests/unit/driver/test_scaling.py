"""Compiling takes work in proportion to the number of layers: counted in lines of Python, pass by pass, not timed.

Of three models of equal layers, the second with twice and the third with four times as many, the third may cost at most
about twice as much more than the second as that costs more than the first. What grows with the square of
the number of layers makes that four.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save
from xdsl.dialects.builtin import ModuleOp

from msc.driver.compile import Step, compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.runtime.weights import write_weights

LAYERS = 8, 16, 32
MACHINE = """
base = "x86-64-v3"
[memory.L2]
bytes = 4_194_304
"""
"""L2 holds the weights of all models, L1 those of none of the convolutions: what a search compares is of one kind."""

NORM = """
%g{k} = ms.get_parameter @g{k} : tensor<16xf32>
%w{k} = ms.get_parameter @w{k} : tensor<16x16xf32>
%n{k} = ms.layer_norm %y{last}, %g{k}, %g{k}
%d{k} = ms.dense %n{k}, %w{k}, %g{k}
%r{k} = ms.gelu %d{k}
%y{k} = ms.add %r{k}, %y{last}
"""
CONVOLUTION = """
%g{k} = ms.get_parameter @g{k} : tensor<16xf32>
%w{k} = ms.get_parameter @w{k} : tensor<16x16x3x3xf32>
%c{k} = ms.conv2d %y{last}, %w{k} {{pad_mode = "same"}}
%n{k} = ms.batch_norm %c{k}, %g{k}, %g{k}, %g{k}, %g{k}
%r{k} = ms.relu %n{k}
%y{k} = ms.add %r{k}, %y{last}
"""
MASK = """
%g{k} = ms.get_parameter @g{k} : tensor<16xf32>
%w{k} = ms.get_parameter @w{k} : tensor<16x16xf32>
%d{k} = ms.matmul %y{last}, %w{k}
%m{k} = ms.add %d{k}, %mask
%s{k} = ms.softmax %m{k}
%y{k} = ms.mul %s{k}, %g{k}
"""
"""Every layer uses what the first one computed."""
CHAIN = (
    "\n".join(
        f"%c{{k}}_{i + 1} = ms.{('sigmoid', 'relu', 'tanh')[i % 3]} %{'y{last}' if i == 0 else f'c{{k}}_{i}'}"
        for i in range(24)
    )
    + "\n%y{k} = ms.neg %c{k}_24\n"
)
"""Elementwise operations, which would all make one kernel."""

MODELS = {
    "norm": (NORM, (8, 16), (16, 16)),
    "convolution": (CONVOLUTION, (1, 16, 8, 8), (16, 16, 3, 3)),
    "mask": (MASK, (8, 16), (16, 16)),
    "chain": (CHAIN, (8, 16), (16, 16)),
}


def write_model(folder: Path, name: str, layers: int) -> Path:
    """A model of equal layers, each with weights of its own."""
    layer, image, weight = MODELS[name]
    shapes = {f"g{k}": (16,) for k in range(1, layers + 1)} | {f"w{k}": weight for k in range(1, layers + 1)}
    (folder / "w.safetensors").write_bytes(save({n: np.ones(shape, np.float32) for n, shape in shapes.items()}))
    parameters = "\n".join(f"ms.parameter @{n} : tensor<{'x'.join(map(str, s))}xf32>" for n, s in shapes.items())
    body = "\n".join(layer.format(k=k, last=k - 1) for k in range(1, layers + 1))
    type_ = f"tensor<{'x'.join(map(str, image))}xf32>"
    path = folder / f"{name}.mir"
    path.write_text(
        f'builtin.module attributes {{ms.weights = "w.safetensors"}} {{\n{parameters}\n'
        f"func.func @main(%x: {type_}) -> {type_} {{\n%mask = ms.sigmoid %x\n%y0 = ms.relu %x\n{body}\n"
        f"func.return %y{layers} : {type_}\n}}\n}}\n",
        "utf-8",
    )
    return path


def options_for(folder: Path) -> CompileOptions:
    """Those that compile a model for the machine, whose file is written into a folder."""
    machine = folder / "machine.toml"
    machine.write_text(MACHINE, "utf-8")
    return CompileOptions(march=str(machine))


class Work:
    """How many lines of Python are run, by what is going on; a turn of a loop is a line at least."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self._lines = 0

    @contextmanager
    def counted(self) -> Generator[None]:
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)

    def done(self, what: str) -> None:
        self.of[what] += self._lines
        self._lines = 0

    def after_step(self, step: Step, module: ModuleOp) -> None:
        del module
        self.done(f"{step.stage}: up to {step.name.partition('{')[0]}")

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        del frame, argument
        self._lines += event == "line"
        return self._trace


def work_of(model: Path) -> Counter[str]:
    """The work of each pass, with the verification before it, and of the steps after the passes."""
    work = Work()
    with work.counted():
        compilation = compile_model(str(model), options_for(model.parent), after_step=work.after_step)
        work.done("loop: verify")
        program = generate_c(compilation)
        work.done("c")
        with Path(os.devnull).open("wb") as file:
            write_weights(program, compilation.parameters(), file)
        work.done("weights")
    return work.of


@pytest.mark.parametrize("name", MODELS)
def test_work_is_in_proportion_to_the_layers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # All work is done and counted here: of what forked processes share, each takes as much as it comes to.
    monkeypatch.setattr("msc.support.forked._processors", lambda: 1)
    work_of(write_model(tmp_path, name, LAYERS[0]))  # fills what is kept of each distinct kernel, inner layers' too
    first, second, third = (work_of(write_model(tmp_path, name, layers)) for layers in LAYERS)
    grows = {what: (third[what] - second[what]) / max(1000, second[what] - first[what]) for what in third}
    assert {what: round(ratio, 2) for what, ratio in grows.items() if ratio > 2.15} == {}
    assert sum(third.values()) > 1_000_000, "the passes were counted"
