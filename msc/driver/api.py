"""`msc.compile` and `msc.load`: models as Python functions on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msc.backends.registry import DEFAULT
from msc.driver.api_arguments import compile_options
from msc.driver.artifacts.libraries import library_of
from msc.driver.artifacts.model_on_call import ModelOnCall
from msc.driver.models.model_sources import ModelFile
from msc.driver.options import DEFAULT_MEMORY, CompileOptions
from msc.runtime.artifact import CompiledModel, load
from msc.support.argument_values import boolean, file_path, refuse
from msc.support.diagnostics import DecidedByCall, Diagnostic, MscError
from msc.support.failures import Door

if TYPE_CHECKING:
    from typing import BinaryIO, SupportsIndex, TextIO

    from numpy.typing import ArrayLike

__all__ = ["CompiledModel", "compile", "export", "load"]


class Serializable(Protocol):
    """A model in memory that says its bytes itself, as a ModelProto of ONNX does."""

    def SerializeToString(self) -> bytes: ...


ModelSource: TypeAlias = "str | PathLike[str] | bytes | BinaryIO | TextIO | Serializable"
Size: TypeAlias = "SupportsIndex | str | Sequence[SupportsIndex]"


def compile(
    model: ModelSource | Callable[..., Any],
    *examples: Any,
    target: str = DEFAULT,
    threads: SupportsIndex | None = None,
    dims: Mapping[str, Size] | None = None,
    march: str | None = None,
    weights: str | PathLike[str] | None = None,
    max_memory: SupportsIndex | str = DEFAULT_MEMORY,
    tuned: str | PathLike[str] | None = None,
    winograd: bool = True,
    flush_subnormals: bool = False,
    check_indices: bool = False,
    precision: str = "f32",
    without: Sequence[str] | str = (),
    input_values: Mapping[str, ArrayLike] | None = None,
    use_cache: bool = True,
    any_layout: bool = False,
) -> CompiledModel:
    """Compile a model to a function: NumPy arrays in, NumPy arrays out.

    A Cell or a Python function is compiled for arguments of the types of `examples`, which are tensors, arrays, or
    tuples, lists and dicts of them; the compiled function takes the arrays in them from left to right, and returns what
    the Cell returns, with arrays for tensors. Parameters that it assigns are further inputs, updated in place. For
    `Tensor(shape=(None, 4), dtype=...)` it is compiled at each call with a size that is new; `dims` may give the size,
    or limits, of dimension 0 of argument x as `{"x.0": (1, 8)}`.

    `model` is the path of a `.mir`, any later stage or an `.onnx` file; or it is in memory: `.mir` text, the bytes of
    an ONNX model, a ModelProto, or a file open for reading. The weights of text lie in the current folder, or in
    `weights`, which is the folder of the weights if it is not the model's.

    `threads` is 1 if not given, 0 for one on each processor; `dims` gives sizes to open dimensions, or ranges such as
    `(1, 64)` or "1..64", within which each call decides by the shapes of its inputs; `march` is a CPU, this one if
    not given; `max_memory` is in bytes, or as "4G"; `tuned` is a file that `msc tune` wrote; `winograd` lets
    convolutions be computed by Winograd's algorithm; `flush_subnormals` takes zeros for subnormal numbers;
    `check_indices` has a call look first at inputs that the model gathers by (MSC0610); `precision` "bf16" or
    "f16" rounds the operands of products, and stores weights so; `without` names optimisations to turn off;
    `input_values` fixes inputs of an ONNX model, which then are inputs no more. A model that was compiled before comes
    from the cache. With `any_layout` the arrays of parameters that a Cell updates
    may lie in memory as its products read them: `state` of the compiled function makes such arrays.

    Where sizes are open that `dims` does not give, where the values of inputs decide shapes, and where no one library
    is right for all sizes of a range, the function is a `ModelOnCall`: it compiles at the first call of a kind.

    Raises MscError for everything that is wrong: MSC0008 for an argument, else what is wrong with the model or its
    files.
    """
    with Door():
        if isinstance(model, type):
            refuse("model", model, "a Cell or a function, not a class", f"pass an object of it: {model.__name__}()")
        is_cell = callable(model)
        if examples and not is_cell:
            (target, threads, dims) = _positional(examples, (target, threads, dims))
        options = compile_options(
            {
                **{"target": target, "threads": threads, "dims": dims, "march": march, "weights": weights},
                **{"max_memory": max_memory, "tuned": tuned, "winograd": winograd, "without": without},
                **{"flush_subnormals": flush_subnormals, "check_indices": check_indices, "input_values": input_values},
                "precision": precision,
            }
        )
        cached, any_order = boolean("use_cache", use_cache), boolean("any_layout", any_layout)
        if is_cell:
            _refuse_values(options)
            from msc.driver.artifacts.cell_compilation import compile_cell

            return compile_cell(model, examples, options, use_cache=cached, any_layout=any_order)
        if any_order:
            message = "any_layout has no effect here: the model file says it, by ms.layout of its arguments"
            raise MscError(Diagnostic("MSC0014", message, help="leave it out"))
        with ModelFile(model) as file:
            if not file.fixes_inputs:
                _refuse_values(options)
            if file.in_memory and options.weights is None:
                options = replace(options, weights=Path.cwd())
            try:
                return library_of(str(file.path), options, use_cache=cached).load()
            except DecidedByCall as error:
                reason = DecidedByCall(file.renamed(error.diagnostics[0]), error.inputs)
                return ModelOnCall.of_file(str(file.path), options, reason, use_cache=cached, keep=file)


def _refuse_values(options: CompileOptions) -> None:
    """Raises MSC0014 if values are given to inputs."""
    if options.input_values:
        message = "input_values has no effect here: it fixes inputs of model files of some formats, and this is of none"
        raise MscError(Diagnostic("MSC0014", message, help="leave it out"))


def _positional(given: Sequence[Any], others: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Target, threads and dims by position, of a model that is no Cell. Raises MSC0008 for more, and for examples."""
    if len(given) > len(others) or not isinstance(given[0], str):
        message = "examples of arguments go with a Cell or a function; a model file says itself what its inputs are"
        help_ = 'leave them out; dims={"batch": 8} gives sizes to open dimensions'
        raise MscError(Diagnostic("MSC0008", message, help=help_))
    target, threads, dims = (*given, *others[len(given) :])
    return target, threads, dims


def export(
    net: Callable[..., Any],
    *inputs: Any,
    file_name: str,
    file_format: str = "MIR",
    force: bool = False,
    any_layout: bool = False,
) -> str:
    """Write a Cell or function as a model file for inputs of these types; the file's name with its extension.

    `file_format` is "MIR", with the weights as safetensors beside it, "ONNX", or a form of `msc compile` such as "SO";
    A file that msc did not write is replaced only if `force` is given. With `any_layout`
    parameters that the Cell updates may lie in memory as its products read them (`ms.layout`). Raises MSC0007 for
    another format, MSC0011 for such a file, MSC0720 for what ONNX does not have, and what capturing raises.
    """
    with Door():
        from msc.driver.artifacts.cell_compilation import export_cell

        flags = {"force": boolean("force", force), "any_layout": boolean("any_layout", any_layout)}
        return export_cell(
            net, inputs, file_path("file_name", file_name, writes=file_format != "bundle"), file_format, **flags
        )
