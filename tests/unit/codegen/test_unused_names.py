"""What C does not read it does not name: compilers, asked with warnings as errors, warn of unused parameters."""

from pathlib import Path

import numpy as np
import pytest

from tests.unit.compiled.programs import compiled

SAME = ("%y = ms.less_equal %x, %x", True), ("%y = ms.less %x, %x", False)
ZERO = ("%z = ms.bitwise_xor %x, %x\n%y = ms.greater_equal %x, %z", True)


@pytest.mark.parametrize(("body", "expected"), [*SAME, ZERO])
@pytest.mark.parametrize("shape", ["8x5", "8x64"])
@pytest.mark.parametrize("threads", [1, 2])
def test_comparisons_that_are_decided_read_nothing(
    tmp_path: Path, body: str, expected: bool, shape: str, threads: int
) -> None:
    head = f"func.func @main(%x: tensor<{shape}xui32>) -> tensor<{shape}xi1>"
    model = compiled(f"{head} {{\n{body}\nfunc.return %y : tensor<{shape}xi1>\n}}", tmp_path, threads=threads)
    x = np.arange(np.prod([int(n) for n in shape.split("x")]), dtype=np.uint32).reshape([8, -1])
    (found,) = model.results(x)
    assert (found == expected).all()
