"""MSC06xx: calls of compiled models."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code("MSC0601", "missing input", "Each input of the model needs one value, by name or in order."),
    Code("MSC0602", "unknown input", "The model has no input of this name; `msc inspect` lists its inputs."),
    Code("MSC0603", "input has another shape", "The message gives the declared shape and the one of the value given."),
    Code(
        "MSC0604",
        "input has another element type",
        "msc converts no input silently. Convert the array, or put an `ms.cast` into the model.",
    ),
    Code("MSC0605", "no such function", "The module has no function of the name to call; models start at `@main`."),
    Code(
        "MSC0606",
        "the compiled model reported an error",
        "The generated C returned an error code: a pointer was null or misaligned, or its weights were not set.",
    ),
    Code(
        "MSC0609",
        "model without clocks",
        "The artifact was built without clocks between its kernels. `msc compile MODEL --profile -o model.so` builds "
        "one with them; `msc bench MODEL --kernels` does it by itself.",
    ),
    Code(
        "MSC0610",
        "index outside its dimension",
        "An index given as data, as to `ms.gather`, is outside the dimension that it counts along.",
    ),
    Code(
        "MSC0611",
        "operation cannot be executed",
        "The interpreter has no meaning for this operation at this stage of the compilation.",
    ),
    Code(
        "MSC0614",
        "array cannot be updated in place",
        "The function leaves a result in the array that it is given. That must be the caller's own array, of the right"
        " dtype, C-contiguous and writable: a converted copy would be updated instead, and lost.",
    ),
    Code(
        "MSC0607",
        "value of an input cannot be read",
        "`--input NAME=@file.npy` reads a NumPy file, `--input NAME=2x3xf32=1,2,3,4,5,6` gives the elements, and one "
        "element alone fills the tensor; without a type, as in `n=2`, they take the tensor's. The same forms serve "
        "`--expect`.",
    ),
    Code(
        "MSC0608",
        "output is not as expected",
        "An output of `msc run` differs from the one given by `--expect` by more than `--atol` and `--rtol` allow.",
    ),
    Code(
        "MSC0612",
        "no thread for the call",
        "A call whose local arrays do not fit on the stack of the caller's thread, or which may take long, runs in a "
        "thread of its own. The system gave none: its limit of threads or of memory is reached.",
    ),
    Code(
        "MSC0613",
        "memory for results does not fit",
        "`call_into`, `bind` and `profile` write into arrays of the caller's: one for each output, of its shape and "
        "dtype, C-contiguous, writable, sharing no memory with another array of the call. `new_outputs()` makes them.",
    ),
)
