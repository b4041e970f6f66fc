"""RAM over time: `msc inspect --memory` and its picture."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

from click.testing import CliRunner

from msc.driver.cli import command

MODEL = """
func.func @main(%x: tensor<9x28xf32>, %w: tensor<28x10xf32>, %v: tensor<10x30xf32>) -> tensor<9x30xf32> {
  %y = ms.matmul %x, %w
  %z = ms.matmul %y, %v
  %s = ms.softmax %z
  func.return %s : tensor<9x30xf32>
}
"""


def test_what_is_live_is_listed_and_drawn(tmp_path: Path) -> None:
    (tmp_path / "net.mir").write_text(MODEL, encoding="utf-8")
    options = [str(tmp_path / "net.mir"), "--march", "cortex-m4"]
    picture = tmp_path / "ram.svg"
    printed = CliRunner().invoke(command, ["inspect", *options, "--memory", "--memory-picture", str(picture)]).output
    found = json.loads(CliRunner().invoke(command, ["inspect", *options, "--json"]).output)
    sizes = [sum(size for _, size in step["live"]) for step in found["memory"]]
    assert sizes
    assert 0 < max(sizes) <= found["workspace_bytes"]
    assert [int(size) for size in re.findall(r"^[* ] *(\d+)  ", printed, re.M)] == sizes
    boxes = [e for e in ElementTree.parse(picture).iter() if e.tag.endswith("}rect")]
    assert len(boxes) == 1 + sum(len(step["live"]) for step in found["memory"])
    again = CliRunner().invoke(command, ["inspect", *options, "--memory-picture", str(picture)])
    assert again.exit_code == 0
    picture.write_text("mine", encoding="utf-8")
    refused = CliRunner().invoke(command, ["inspect", *options, "--memory-picture", str(picture)])
    assert "MSC0011" in str(refused.exception)
