"""A plan becomes a partitioned program: layouts as marks, spread by passes; all ranks together compute the whole."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from msc.driver.cli import command
from msc.driver.passes.opt import OptOptions, run_opt
from msc.planner.layout_search import MODES
from tests.unit.parallel.programs import module_from, random_inputs, results

MODEL = """builtin.module {
  func.func @main(%x: tensor<16x64xf32>, %w: tensor<64x128xf32>, %v: tensor<128x32xf32>) -> tensor<16x32xf32> {
    %y = ms.matmul %x, %w
    %r = ms.relu %y
    %z = ms.matmul %r, %v
    %s = ms.softmax %z {axis = -1}
    func.return %s : tensor<16x32xf32>
  }
}
"""


@pytest.mark.parametrize("mode", MODES)
def test_ranks_of_a_plan_compute_the_whole(mode: str, tmp_path: Path) -> None:
    model, marked = tmp_path / "model.mir", tmp_path / "marked.mir"
    model.write_text(MODEL)
    words = ["parallel", "plan", str(model), "--devices", "4", "--search", mode, "--marks", str(marked)]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    assert "ms.shard" in marked.read_text()
    program = module_from(run_opt(str(marked), OptOptions("propagate-layouts,partition")))
    (inputs,) = random_inputs(1, (16, 64), (64, 128), (128, 32))
    ((whole,),) = results(module_from(MODEL), [inputs])
    for (part,) in results(program, [inputs] * 4):
        np.testing.assert_allclose(part, whole, rtol=1e-5, atol=1e-6)
