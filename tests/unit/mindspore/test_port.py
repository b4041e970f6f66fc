"""`msc port`: names of programs, and their imports."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from msc.driver.verbs.port import command
from msc.mindspore import porting

PROGRAM = """import mindspore
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, ops as P
from mindspore.nn.layer import Dense
from mindspore.ops.operations import NPUGetFloatStatus
import os, mindspore.numpy

def f(x):
    import mindspore.dataset as ds
    return ms.nothing_of_this(P.relu(x)), nn.ReLU()(x), mindspore.numpy.ones(3), os.sep
"""


def test_names_and_lines() -> None:
    found = {(use.line, use.name, use.state) for use in porting.uses(PROGRAM)}
    assert (11, "mindspore.nothing_of_this", "missing") in found
    assert (6, "mindspore.ops.operations.NPUGetFloatStatus", "refused") in found
    assert (11, "mindspore.nn.ReLU", "") in found
    assert [name for _, name, state in found if state == "missing"] == ["mindspore.nothing_of_this"]


def test_imports_are_replaced_and_nothing_else() -> None:
    text = porting.ported(PROGRAM)
    assert text.splitlines()[:9] == [
        "import msc as mindspore",
        "import msc as ms",
        "import msc.nn as nn",
        "from msc import Tensor, ops as P",
        "from msc.nn.layer import Dense",
        "from msc.ops.operations import NPUGetFloatStatus",
        "import os",
        "import msc.numpy",
        "import msc as mindspore",
    ]
    assert text.splitlines()[-2:] == ["    import msc.dataset as ds", PROGRAM.splitlines()[-1]]


@pytest.mark.parametrize("write", [False, True])
def test_a_folder(tmp_path: Path, write: bool) -> None:
    (tmp_path / "a.py").write_text("from mindspore import nn\nprint(nn.Dense(2, 3))\n")
    (tmp_path / "b.py").write_text("import mindspore as ms\nms.no_such_name\n")
    (tmp_path / "c.py").write_text("print(1)\n")
    done = CliRunner().invoke(command, [str(tmp_path), *(["--write"] if write else [])], standalone_mode=False)
    assert "1 of 2 files" in done.output
    assert "b.py:2: mindspore.no_such_name is missing" in done.output
    assert ("msc" in (tmp_path / "a.py").read_text()) == write
