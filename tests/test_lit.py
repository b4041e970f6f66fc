"""Runs the lit tests, so that one `pytest` runs everything."""

import subprocess
import sys
from pathlib import Path

LIT_FOLDER = Path(__file__).parent / "lit"


def test_lit() -> None:
    command = [
        sys.executable,
        "-c",
        "from lit.main import main; main()",
        "-j2",
        "-v",
        "--no-progress-bar",
        str(LIT_FOLDER),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
