"""What `msc quantize` reads beside the model: arrays, Python files, configurations of MindSpore Lite's converter.

Running a Python file executes whatever stands in it: name only files that you trust.
"""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import Any

import numpy as np

from msc.formats.cell_files import run_file
from msc.formats.user_code import UserCode
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.files import near_file, read_source

_METHODS = {"MAX_MIN": "min-max", "KL": "entropy", "REMOVAL_OUTLIER": "percentile"}
_KINDS = ("FULL_QUANT", "DYNAMIC_QUANT", "WEIGHT_QUANT")


def loaded_data(text: str) -> object:
    """The arrays of a `.npz` or `.npy` file, or what the loader of `script.py:LOADER` gives. Raises MSC1211."""
    if ".py:" in text or text.endswith(".py"):
        found = named_object(text)
        with UserCode("MSC1211", f"'{text}' gives no data"):
            return found() if callable(found) else found
    path = Path(text)
    try:
        found: Any = np.load(path, allow_pickle=False)
        return {name: found[name] for name in found.files} if hasattr(found, "files") else found
    except (OSError, ValueError, EOFError, KeyError) as error:
        message = f"'{text}' is no file of arrays" if path.exists() else f"there is no file '{text}'"
        help_ = near_file(path) if not path.exists() else "numpy.savez(FILE, image=...) writes one"
        raise MscError(Diagnostic("MSC1211", message, help=help_)) from error


def named_object(text: str) -> Any:
    """What a name of a Python file stands for: `script.py:loader`. Raises MSC0001, MSC0852 and MSC1211."""
    file, _, name = text.rpartition(".py")
    name = name.removeprefix(":")
    module = run_file(Path(f"{file}.py"))
    if not name or not hasattr(module, name):
        known = [each for each in vars(module) if not each.startswith("_")]
        message = f"'{file}.py' has no '{name}'" if name else f"'{text}' names no function of the file"
        raise MscError(Diagnostic("MSC1211", message, help=did_you_mean(name, known) or "write FILE.py:NAME"))
    return getattr(module, name)


def read_configuration(path: Path, code: str) -> configparser.ConfigParser:
    """The sections of a configuration of MindSpore Lite's converter. Raises MSC0001, and `code` for what is none."""
    parser = configparser.ConfigParser(strict=False)
    try:
        parser.read_string(read_source(path))
    except configparser.Error as error:
        message = f"'{path}' is no configuration: {str(error).splitlines()[0]}"
        raise MscError(Diagnostic(code, message)) from error
    return parser


def lite_configuration(path: Path) -> dict[str, Any]:
    """The options that a configuration of MindSpore Lite's converter says. Raises MSC1214 for what msc cannot do."""
    parser = read_configuration(path, "MSC1214")
    common = dict(parser["common_quant_param"]) if parser.has_section("common_quant_param") else {}
    full = dict(parser["full_quant_param"]) if parser.has_section("full_quant_param") else {}
    kind = common.get("quant_type", "FULL_QUANT").upper()
    if kind not in _KINDS:
        message = f"'{path}': quant_type is {kind}; msc reads {', '.join(_KINDS)}"
        raise MscError(Diagnostic("MSC1214", message))
    found: dict[str, Any] = {"dynamic": kind == "DYNAMIC_QUANT"}
    if kind == "WEIGHT_QUANT":
        found["weights"] = f"{_number(path, 'bit_num', common.get('bit_num', '8'))}bit"
    elif "bit_num" in common:
        found["bits"] = found["weight_bits"] = _number(path, "bit_num", common["bit_num"])
    if "activation_quant_method" in full:
        method = full["activation_quant_method"].upper()
        if method not in _METHODS:
            message = f"'{path}': activation_quant_method is {method}; it is one of {', '.join(_METHODS)}"
            raise MscError(Diagnostic("MSC1214", message))
        found["method"] = _METHODS[method]
    if "bias_correction" in full:
        found["bias_correction"] = full["bias_correction"].lower() == "true"
    return found


def _number(path: Path, name: str, text: str) -> int:
    if not text.isdigit():
        raise MscError(Diagnostic("MSC1214", f"'{path}': {name} is {text}, not a number"))
    return int(text)
