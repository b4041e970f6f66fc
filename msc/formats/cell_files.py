"""`module.py:Net` on the command line: the file is run, the Cell is made and captured.

Running a file executes whatever stands in it: name only files that you trust.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from msc.dialects.arrays import numpy_dtype
from msc.dialects.element_types import ELEMENT_TYPES
from msc.formats.capture import capture
from msc.formats.user_code import UserCode
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor
from msc.importers.imported import Imported
from msc.nn.cell import Cell
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean, raise_any
from msc.support.files import read_source
from msc.support.other_frameworks import advice_for, framework_of
from msc.support.wording import counted
from msc.weights.safetensors_file import TensorFile

_TYPE = re.compile(r"((?:\d+x)*)([a-z]+\d+)")


def captured_file(model: str, types: Mapping[str, str], init: Path | None) -> Imported:
    """The model that `module.py:Net` is for inputs of these types, with weights of the file `init`.

    Raises MSC0001 for no such file, MSC0851 for no such Cell in it, MSC0852 where the file or the constructor raises,
    MSC0853 for inputs without a type, and what capturing raises.
    """
    file, _, rest = model.partition(".py")
    path = Path(f"{file}.py")
    target = _target(path, rest.removeprefix(":"))
    if init is not None:
        _initialise(target, init)
    examples = [_example(name, types) for name in _arguments(target, types)]
    return capture(target, examples)


def _target(path: Path, text: str) -> Any:
    """The Cell or function that `Net` or `Net(10)` is in a file."""
    module = run_file(path)
    own = {k: v for k, v in vars(module).items() if getattr(v, "__module__", module.__name__) == module.__name__}
    cells = {name: value for name, value in own.items() if _is_cell(value)}
    name, called, _ = text.partition("(")
    if not name and len(cells) == 1:
        name = next(iter(cells))
    found = own.get(name)
    _refuse_foreign(path, {name: found} if found is not None else own)
    if found is None or not (callable(found) or isinstance(found, Cell)):
        choices = ", ".join(cells) or "none"
        help_ = did_you_mean(name, cells) if name else f"write {path}:{next(iter(cells), 'Net')}"
        message = (
            f"'{path}' has no Cell or function '{name}'" if name else f"'{path}' is given without the name of a Cell"
        )
        message = f"{message}; its Cells: {choices}"
        raise MscError(Diagnostic("MSC0851", message, help=help_))
    if not isinstance(found, type):
        if called:
            raise MscError(Diagnostic("MSC0852", f"'{name}' is no class, which '{text}' would make an object of"))
        return found
    given, named = _constructor_arguments(text) if called else ([], {})
    with UserCode("MSC0852", f"{name}(...) cannot be made"):
        return found(*given, **named)


def _refuse_foreign(path: Path, values: Mapping[str, Any]) -> None:
    """Raise MSC0851 where what a file has is a network of another framework, and no Cell."""
    if any(_is_cell(value) for value in values.values()):
        return
    for name, value in values.items():
        framework = framework_of(value)
        if framework is not None and (isinstance(value, type) or callable(value)):
            message = f"'{name}' in '{path}' is a network of {framework}; msc reads Cells and functions of its own"
            raise MscError(Diagnostic("MSC0851", message, help=advice_for(value)))


def _is_cell(value: object) -> bool:
    return isinstance(value, Cell) or (isinstance(value, type) and issubclass(value, Cell))


def _constructor_arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of `Net(10, width=2)`, which are Python literals. Raises MSC0852."""
    try:
        call = cast(ast.Call, ast.parse(text, mode="eval").body)
        if not isinstance(call.func, ast.Name):
            raise ValueError("more than one call")
        named = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
        return [ast.literal_eval(argument) for argument in call.args], named
    except (SyntaxError, ValueError, AttributeError) as error:
        message = f"'{text}' is no constructor with numbers, strings and lists as arguments"
        raise MscError(Diagnostic("MSC0852", message)) from error


def run_file(path: Path) -> ModuleType:
    """The module of a file, which sees the files beside it as a script would."""
    read_source(path)
    name = f"msc_model_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with UserCode("MSC0852", f"'{path}' cannot be run"):
            spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def _initialise(target: Any, init: Path) -> None:
    """Give a Cell's parameters the values of a safetensors file. Raises MSC0301 to MSC0304."""
    parameters: dict[str, Parameter] = target.parameters_dict() if isinstance(target, Cell) else {}
    file = TensorFile(init)
    problems: list[Diagnostic] = []
    for name, parameter in parameters.items():
        if name not in file.entries:
            near = did_you_mean(name, file.entries)
            problems.append(Diagnostic("MSC0303", f"'{init}' has no value for parameter '{name}'", help=near))
            continue
        array = file.array(name)
        if array.shape != parameter.shape or array.dtype != parameter.dtype.numpy:
            message = f"parameter '{name}' is {parameter.dtype} of shape {parameter.shape}, in '{init}' it is "
            problems.append(Diagnostic("MSC0304", f"{message}{array.dtype} of shape {array.shape}"))
            continue
        parameter.set_data(Tensor(np.array(array)))
    raise_any(problems)


def _arguments(target: Any, types: Mapping[str, str]) -> Sequence[str]:
    """The names of the arguments that get a type, in order. Raises MSC0853."""
    construct = target.construct if isinstance(target, Cell) else target
    construct = getattr(construct, "__msc_function__", construct)
    parameters = inspect.signature(construct).parameters.values()
    names = [p.name for p in parameters if p.name in types or p.default is inspect.Parameter.empty]
    unknown = [name for name in types if name not in {p.name for p in parameters}]
    missing = [name for name in names if name not in types]
    if unknown:
        help_ = did_you_mean(unknown[0], names) or f"its arguments: {', '.join(names) or 'none'}"
        raise MscError(Diagnostic("MSC0853", f"construct has no argument '{unknown[0]}'", help=help_))
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing)
        help_ = " ".join(f"--input {name}=1x3xf32" for name in missing)
        message = f"no type is given for {counted(len(missing), 'argument')} of construct: {listed}"
        raise MscError(Diagnostic("MSC0853", message, help=f"as in {help_}"))
    return names


def _example(name: str, types: Mapping[str, str]) -> Tensor:
    """A tensor of a type such as `1x3xf32`. Raises MSC0853."""
    match = _TYPE.fullmatch(types[name])
    if match is None or match[2] not in ELEMENT_TYPES:
        message = f"--input {name}={types[name]}: write a type, as in {name}=1x3x32x32xf32"
        raise MscError(Diagnostic("MSC0853", message))
    shape = [int(size) for size in match[1].split("x")[:-1]]
    return Tensor.of(np.zeros(shape, numpy_dtype(match[2])))
