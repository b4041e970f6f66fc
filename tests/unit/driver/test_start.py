"""^C while the program is still being imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import builtins, os, signal, sys
from msc.driver import start
imported, wanted = builtins.__import__, sys.argv.pop()
def interrupted(name, *rest, **more):
    if name == wanted:
        os.kill(os.getpid(), signal.SIGINT)
    return imported(name, *rest, **more)
builtins.__import__ = interrupted
start.main()
"""


@pytest.mark.parametrize("module", ["msc.driver.cli", "click", "msc.driver.front", "msc.support.diagnostics"])
def test_an_early_interrupt_takes_one_line(module: str) -> None:
    result = subprocess.run([sys.executable, "-c", CODE, module], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "interrupted\n")


def test_ignored_interrupts_stay_ignored() -> None:
    code = "import os, signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nfrom msc.driver import start\nstart.main()"
    code = f"import atexit, os; atexit.register(lambda: print(signal.getsignal(2) == signal.SIG_IGN))\n{code}"
    result = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "True")


@pytest.mark.parametrize("entry", ["main", "main_opt"])
def test_a_package_that_lies_over_msc(entry: str) -> None:
    """As the index's `msc` would: its `__init__.py` in the place of ours."""
    code = f"import msc; del msc.DISTRIBUTION; from msc.driver import start; start.{entry}()"
    result = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("error[MSC0012]")
    assert "Traceback" not in result.stderr
