"""C for a Cortex-M4 runs on its emulator, and machines say how much RAM and flash they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import msc
from msc.codegen.c.emit import check_memory
from msc.driver.cli import command
from msc.runtime.program import Signature
from msc.support.diagnostics import MscError
from msc.targets.catalogue import machine_named
from tests.unit.targets import bare_metal

MODEL = """
func.func @main(%x: tensor<1x28xf32>, %w: tensor<28x10xf32>, %b: tensor<10xf32>) -> tensor<1x10xf32> {
  %y = ms.matmul %x, %w
  %z = ms.add %y, %b
  %r = ms.relu %z
  func.return %r : tensor<1x10xf32>
}
"""
MAIN = """
#include <stdio.h>
#include "net.h"
{arrays}
int main(void)
{{
    static float out[10];
    static unsigned char workspace[NET_WORKSPACE_BYTES + 1] __attribute__((aligned(64)));
    if (net_run(x, w, b, out, workspace))
        return 1;
    for (int k = 0; k < 10; ++k)
        printf("%.9g\\n", out[k]);
    return 0;
}}
"""


def compiled(folder: Path, march: str, *options: str) -> str:
    (folder / "net.mir").write_text(MODEL, encoding="utf-8")
    words = ["compile", str(folder / "net.mir"), "--march", march, "-o", str(folder / "net.c"), *options]
    result = CliRunner().invoke(command, words)
    return result.output


def test_a_model_runs_on_a_cortex_m4(tmp_path: Path) -> None:
    bare_metal.tools_or_skip()
    compiled(tmp_path, "cortex-m4")
    text = (tmp_path / "net.c").read_text(encoding="utf-8")
    assert "vector_size" not in text
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("x", 28), ("w", (28, 10)), ("b", 10))
    }
    lines = (
        f"static const float {name}[] = {{{', '.join(map(float.hex, map(float, array.ravel())))}}};"
        for name, array in arrays.items()
    )
    (tmp_path / "main.c").write_text(MAIN.format(arrays="\n".join(lines)), encoding="utf-8")
    printed = bare_metal.run(tmp_path, [tmp_path / "main.c", tmp_path / "net.c"])
    expected = np.maximum(arrays["x"] @ arrays["w"] + arrays["b"], 0)
    np.testing.assert_allclose(np.array(printed.split(), np.float32), expected, rtol=1e-5, atol=1e-6)


def test_a_machine_has_so_much_memory(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text('base = "cortex-m4"\nram = 16\n', encoding="utf-8")
    with pytest.raises(MscError, match=r"MSC0530.*workspace and stack take"):
        msc.compile(MODEL, march=str(tmp_path / "chip.toml"))
    signature, chip = sample_signature(weights_bytes=2000), replace(machine_named("cortex-m4"), flash=1000)
    with pytest.raises(MscError, match=r"MSC0530.*weights take 2000 bytes of flash, of which cortex-m4 has 1000"):
        check_memory(chip, signature)
    check_memory(replace(chip, flash=2000), signature)


def sample_signature(weights_bytes: int) -> Signature:
    return Signature(
        name="net", inputs=(), outputs=(), workspace_bytes=0, weights_bytes=weights_bytes, msc_version="", target=""
    )


@pytest.mark.parametrize(("bits", "registers"), [(8, 1), (32, 4), (64, 6)])
def test_narrow_machines_are_machines(tmp_path: Path, bits: int, registers: int) -> None:
    """With one lane, and with two; results are those of NumPy."""
    (tmp_path / "small.toml").write_text(
        f'base = "generic"\n[vectors]\nbits = {bits}\nregisters = {registers}\n', encoding="utf-8"
    )
    net = msc.compile(MODEL, march=str(tmp_path / "small.toml"))
    rng = np.random.default_rng(1)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 28), (28, 10), (10,)))
    np.testing.assert_allclose(np.asarray(net(x, w, b)), np.maximum(x @ w + b, 0), rtol=1e-5, atol=1e-6)
