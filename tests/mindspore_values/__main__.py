"""`python -m tests.mindspore_values PYTHON`: record what MindSpore gives, and print where msc differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.mindspore_values import CASES, FOLDER, REASONS, RECORDED, arguments, differences, evaluated

OF_MINDSPORE = """
import json, sys, contextlib, io
import mindspore as ms, mindspore.numpy, mindspore.scipy.linalg, mindspore.nn.probability
from mindspore import Tensor, ops, nn
sys.path.insert(0, sys.argv[1])
from tests.mindspore_values import CASES, arguments, evaluated
scope = dict(arguments(ms.Tensor), mnp=ms.numpy, sl=ms.scipy.linalg)
found = {}
for case in CASES:
    try:
        found[case] = evaluated(ms, scope, case)
    except BaseException as error:
        found[case] = {"error": f"{type(error).__name__}: {str(error)[:80]}"}
json.dump(found, open(sys.argv[2], "w"))
"""


def compared() -> list[tuple[str, str]]:
    """The expressions where msc differs from what is recorded."""
    library: Any = import_module("msc")
    import_module("msc.nn.probability")
    scope = dict(arguments(library.Tensor), mnp=import_module("msc.numpy"), sl=import_module("msc.scipy.linalg"))
    found: list[tuple[str, str]] = []
    for case in CASES:
        wanted = RECORDED.get(case)
        if wanted is None or (isinstance(wanted, dict) and "error" in wanted):
            continue
        try:
            other = differences(evaluated(library, scope, case), wanted)
        except library.MscError as error:
            other = str(error)
        if other and not case.startswith(tuple(REASONS)):
            found.append((case, other))
    return found


def main(arguments_: list[str]) -> int:
    """Record with a Python that has MindSpore, if one is named; print the differences. 1 if there are any."""
    if arguments_:
        path = FOLDER / "recorded.json"
        environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "GLOG_v": "4"}
        root = str(Path(__file__).parents[2])
        subprocess.run([arguments_[0], "-c", OF_MINDSPORE, root, str(path)], check=True, env=environment, cwd=root)
        RECORDED.update(json.loads(path.read_text("utf-8")))
    found = compared()
    for case, other in found:
        print(f"{case}\n    {other}")
    failing = [case for case, value in RECORDED.items() if isinstance(value, dict) and "error" in value]
    for case, reason in REASONS.items():
        print(f"{case}: {reason}")
    print(f"{len(CASES)} expressions, {len(found)} differ, {len(failing)} fail in MindSpore")
    for case in failing if "-v" in arguments_ else ():
        print("   ", case, RECORDED[case]["error"])
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
