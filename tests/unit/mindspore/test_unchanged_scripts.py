"""`python -m msc.mindspore`: programs that import MindSpore run with msc in its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, context
from mindspore.ops import operations as P
import mindspore.common.dtype as mstype
from mindspore.nn.layer.conv import Conv2d
from mindspore.common.initializer import initializer, _calculate_fan_in_and_fan_out
from mindspore.communication.management import get_rank
from beside import VALUE

context.set_context(mode=context.GRAPH_MODE)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu = P.ReLU()
    def construct(self, x):
        return self.relu(x) + VALUE
print(Net()(Tensor([-1.0, 2.0], mstype.float32)), get_rank(), sys.argv[1:], type(Net()).__mro__[1].__module__)
"""


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "msc.mindspore", *arguments], capture_output=True, text=True, check=False
    )


def test_a_script_runs_unchanged(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 1.0\n")
    (tmp_path / "net.py").write_text(SCRIPT)
    ran = _run(str(tmp_path / "net.py"), "--epochs", "3")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split("\n")[0] == "[1. 3.] 0 ['--epochs', '3'] msc.nn.cell"


def test_a_name_that_is_not_there_is_an_error_of_msc(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import mindspore\nmindspore.nn.Dens\n")
    ran = _run(str(tmp_path / "net.py"))
    assert ran.returncode == 1
    assert "MSC0832" in ran.stderr


def test_what_is_no_script() -> None:
    ran = _run("none.py")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "usage" in ran.stderr
