"""The inputs and outputs of a model as its file declares them: open sizes by name, before anything is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, BlockArgument

from msc.dialects.arrays import dtype_text
from msc.dialects.element_types import dtype_name
from msc.dialects.ms.attributes import MS_NAME
from msc.driver.models.dimensions import open_names
from msc.driver.models.entry import entry_function
from msc.driver.models.reading_models import model_format, parse_model
from msc.driver.options import CompileOptions
from msc.formats.format import FileTensor, Reading
from msc.interp.inputs import arguments, declared, note_sizes
from msc.ir.typed import shaped_type
from msc.runtime.arguments import Checker, convertible, numpy_dtype
from msc.runtime.narrow_types import codes_of, narrow_dtype
from msc.runtime.program import TensorSpec
from msc.runtime.tensor_info import SizeRange, TensorInfo
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, MscError


@dataclass(frozen=True)
class OpenTensor(FileTensor):
    """An input or output of a model, for messages, reports and calls."""

    @staticmethod
    def of(declared: FileTensor) -> OpenTensor:
        """What a format's file declares."""
        return OpenTensor(declared.name, declared.dtype, declared.shape, declared.codes, declared.reals)

    @property
    def type_text(self) -> str:
        """The type as people write it: `batch×3×224×224 f32`; of integers that stand for reals, also how."""
        shape = "*" if self.shape is None else "×".join(map(str, self.shape))
        how = "" if self.reals is None else f", of reals (x - {self.reals[1]}) * {self.reals[0]:.8g}"
        return f"{shape} {self.dtype}{how.replace('- -', '+ ')}".lstrip()

    def to_json(self) -> dict[str, object]:
        """Name, element type and shape: a list of numbers and names."""
        how = {} if self.reals is None else {"scale": self.reals[0], "zero": self.reals[1]}
        return {
            **{"name": self.name, "dtype": self.dtype, "shape": None if self.shape is None else list(self.shape)},
            **how,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each open size, "" for one that is known."""
        return tuple(n if isinstance(n, str) else "" for n in self.shape or ())

    def spec(self, array: Array) -> TensorSpec:
        """The tensor of an array's own sizes where they are open. Raises MSC0603 where they do not fit."""
        found = np.asarray(array).shape
        if self.shape is not None:
            fits = len(found) == len(self.shape) and all(
                isinstance(n, str) or n == m for n, m in zip(self.shape, found, strict=True)
            )
            if not fits:
                expected = ", ".join(map(str, self.shape))
                message = f"input '{self.name}' has shape {list(found)}, expected [{expected}]"
                raise MscError(Diagnostic("MSC0603", message))
        return TensorSpec(self.name, self.name, self.dtype, found, codes=self.codes)


def infos(tensors: Sequence[OpenTensor], options: CompileOptions) -> tuple[TensorInfo, ...]:
    """The tensors as `CompiledModel.inputs` has them, with ranges where the options give them."""
    return tuple(TensorInfo(t.name, _dtype(t), _ranges(t.shape, options)) for t in tensors)


def _dtype(tensor: OpenTensor) -> np.dtype[Any]:
    return narrow_dtype(tensor.codes) if tensor.codes else numpy_dtype(tensor.dtype)


def _ranges(shape: tuple[int | str, ...] | None, options: CompileOptions) -> tuple[int | SizeRange, ...] | None:
    if shape is None:
        return None
    between = options.open_dims
    return tuple(n if isinstance(n, int) else SizeRange(n, *between.get(n, (0, None))) for n in shape)


def open_inputs(model: str, options: CompileOptions) -> tuple[OpenTensor, ...]:
    """The inputs that the options leave, in order. Raises what reading the model raises."""
    declared = model_format(model, options).tensors(model, "input")
    if declared is not None:
        inputs = map(OpenTensor.of, declared)
    else:
        module = _declaring(model, options)
        inputs = (_argument(*argument) for argument in arguments(entry_function(module)))
    return tuple(i for i in inputs if i.name not in options.input_values)


def open_outputs(model: str, options: CompileOptions) -> tuple[OpenTensor, ...]:
    """The outputs, in order; a size without a name is `?`. Raises what reading the model raises."""
    declared = model_format(model, options).tensors(model, "output")
    if declared is not None:
        return tuple(map(OpenTensor.of, declared))
    module = _declaring(model, options)
    function = entry_function(module)
    types = function.function_type.outputs.data
    given = list(function.res_attrs) if function.res_attrs is not None else [DictionaryAttr({})] * len(types)
    return tuple(_result(k, *result) for k, result in enumerate(zip(types, given, strict=True)))


def _declaring(model: str, options: CompileOptions) -> ModuleOp:
    """The module of a file as it stands, before its open sizes are known."""
    found = model_format(model, options)
    return parse_model(model, options)[0] if found.holds == "ir" else found.read(model, Reading()).module


def _argument(argument: BlockArgument, attributes: Mapping[str, Attribute]) -> OpenTensor:
    found, names = declared(argument, attributes), open_names(argument, attributes)
    shape = tuple(name or n for name, n in zip(names, found.shape, strict=True))
    return OpenTensor(found.name, dtype_text(found.dtype), shape)


def _result(number: int, type_: Attribute, attributes: DictionaryAttr) -> OpenTensor:
    name, tensor = attributes.data.get(MS_NAME), shaped_type(type_)
    shape = tuple("?" if n == DYNAMIC_INDEX else n for n in tensor.get_shape())
    text = name.data if isinstance(name, StringAttr) else f"output{number}"
    return OpenTensor(text, dtype_name(tensor.get_element_type()) or "?", shape)


def checked_inputs(
    inputs: Sequence[OpenTensor], options: CompileOptions, arrays: Sequence[Array], named: Mapping[str, Array]
) -> dict[str, Array]:
    """The arrays of a call by name, in the order of the inputs. Raises MSC0601 to MSC0604."""
    order = Checker([TensorSpec(i.name, i.name, i.dtype, ()) for i in inputs])
    given = [
        _coded(i, convertible(array, i.name))
        for i, array in zip(inputs, order.arranged(tuple(arrays), named), strict=True)
    ]
    specs = [i.spec(array) for i, array in zip(inputs, given, strict=True)]
    sizes = {name: size for name, size in options.dims.items() if isinstance(size, int)}
    for i, spec in zip(inputs, specs, strict=True):
        if i.shape is not None:
            note_sizes(sizes, i.name, i.names, spec.shape)
    for name, (low, high) in options.open_dims.items():
        if name in sizes and not low <= sizes[name] <= high:
            raise MscError(Diagnostic("MSC0603", f"dimension '{name}' is {sizes[name]}, expected {low} to {high}"))
    checked = Checker(specs).check(tuple(given), {})
    return {spec.name: array for spec, array in zip(specs, checked, strict=True)}


def _coded(declared: OpenTensor, array: Array) -> Array:
    """An array of a narrow type as its codes."""
    return codes_of(np.asarray(array), narrow_dtype(declared.codes)) if declared.codes else array
