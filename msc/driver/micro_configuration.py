"""Section `[micro_param]` of a configuration of MindSpore Lite's converter: what its code generator is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msc.driver.calibration_files import read_configuration
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.catalogue import machine_named

_MACHINES = {"x86": "x86-64-v3", "arm64": "neon", "arm32": "armv7-a", "cortex-m": "cortex-m4"}
"""By the name of a target there; of Cortex-M the most common with the instructions that its library uses."""
_KNOWN = frozenset(
    {"enable_micro", "target", "codegen_mode", "support_parallel", "debug_mode", "save_path", "project_name"}
)


def micro_options(path: Path) -> dict[str, Any]:
    """The options of `msc compile` that it says: march, threads, name and layout. Raises MSC0001 and MSC0533."""
    parser = read_configuration(path, "MSC0533")
    if not parser.has_section("micro_param"):
        raise _failure(path, "it has no section [micro_param]")
    given = dict(parser["micro_param"])
    unknown = sorted(given.keys() - _KNOWN)
    if unknown:
        raise _failure(path, f"micro_param has no '{unknown[0]}'; msc reads {', '.join(sorted(_KNOWN))}")
    if not _flag(path, given, "enable_micro", default=True):
        raise _failure(path, "enable_micro is false: it asks for no code")
    mode = given.get("codegen_mode", "Inference")
    if mode.lower() != "inference":
        raise _failure(path, f"codegen_mode is {mode}; msc generates the code of a training step from a Python step")
    target = given.get("target", "x86").lower()
    if target not in _MACHINES:
        raise _failure(path, f"target is {given['target']}; it is one of x86, ARM64, ARM32, Cortex-M")
    march = _MACHINES[target]
    return {
        "march": march,
        "threads": 0 if _flag(path, given, "support_parallel", default=False) else None,
        "name": given.get("project_name", "net"),
        "layout": "lite" if machine_named(march).is_bare else "",
    }


def _flag(path: Path, given: dict[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise _failure(path, f"{name} is {given[name]}; it is true or false")
    return text == "true"


def _failure(path: Path, message: str) -> MscError:
    return MscError(Diagnostic("MSC0533", f"'{path}': {message}"))
