"""MSC03xx: weights and parameters."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code(
        "MSC0301",
        "weights cannot be read",
        "The safetensors file that the module's `ms.weights` names does not exist, may not be read, or is not a"
        " plain file.",
    ),
    Code(
        "MSC0302",
        "weights are not a valid safetensors file",
        "The header or the extents of the data do not agree with the file: it is truncated, corrupt, or of another"
        " format.",
    ),
    Code(
        "MSC0303",
        "parameter is missing",
        "The weights have no tensor of the name that an `ms.parameter` of the module has, or no value was given"
        " for it.",
    ),
    Code(
        "MSC0304",
        "parameter has another type",
        "The tensor in the weights has another shape or element type than the `ms.parameter` declares. msc never"
        " converts weights silently.",
    ),
    Code(
        "MSC0305",
        "weights lie outside the module's folder",
        "`ms.weights` is a relative path to a file in the folder of the module: absolute paths, `..` and symbolic"
        " links that lead out are refused, so that a model from elsewhere cannot read other files.",
    ),
    Code(
        "MSC0306",
        "module names no weights",
        'The module declares parameters, but no attribute `ms.weights = "file.safetensors"` says where their values'
        " are.",
    ),
    Code(
        "MSC0307",
        "a Llama cannot be loaded",
        "The folder needs a `config.json` of a Llama and its weights as `model.safetensors`; a `.gguf` file needs the"
        " package gguf (`pip install 'msc-compiler[gguf]'`). The message says which size, type or tensor does not fit.",
    ),
)
