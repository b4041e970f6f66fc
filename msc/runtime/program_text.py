"""C text of the stand-alone program, and the table through which it knows the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

from msc.runtime.program import ELEMENT_BYTES, CProgram, TensorSpec

_TABLE = """/* {name} as a table, for programs that work on any model. */
#include "{name}.h"

struct msc_tensor {{
    const char *name;
    const char *dtype;
    size_t element_bytes;
    size_t elements;
    int rank;
    size_t shape[{rank}];
}};

#define MSC_NAME "{name}"
#define MSC_INPUTS {inputs}
#define MSC_OUTPUTS {outputs}
#define MSC_WORKSPACE_BYTES {macro}_WORKSPACE_BYTES
#define MSC_ALIGNMENT {model}_ALIGNMENT

static const struct msc_tensor msc_tensors[] = {{
{rows}}};

static int msc_run(void *const *tensors, void *workspace)
{{
    return {function}({arguments});
}}
"""


def table_text(program: CProgram) -> str:
    """`model_table.h`: tensors as data, and a call through an array of pointers, with the largest sizes."""
    signature = program.signature
    tensors = (*signature.inputs, *signature.outputs)
    return _TABLE.format(
        name=program.name,
        function=signature.symbol,
        macro=signature.macro,
        model=program.name.upper(),
        inputs=len(signature.inputs),
        outputs=len(signature.outputs),
        rank=max((len(t.shape) for t in tensors), default=0) or 1,
        rows="".join(_row(t) for t in tensors),
        arguments=", ".join(
            [*(f"tensors[{k}]" for k in range(len(tensors))), *(str(s.high) for s in signature.sizes), "workspace"]
        ),
    )


def _row(tensor: TensorSpec) -> str:
    shape = ", ".join(str(size) for size in tensor.shape) or "1"
    fields = f'"{tensor.dtype}", {ELEMENT_BYTES[tensor.dtype]}, {tensor.elements}, {len(tensor.shape)}, {{{shape}}}'
    return f"    {{{c_string(tensor.name)}, {fields}}},\n"


def c_string(text: str) -> str:
    """A C string literal: JSON's escapes are C's, once everything outside ASCII is an octal escape."""
    plain = "".join(
        chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode("utf-8", "replace")
    )
    return f'"{plain}"'


def main_text() -> str:
    """The program: reads inputs from .npy files or makes them up, runs the model, prints its outputs."""
    return _resource("main.c")


def tensor_text() -> str:
    """`tensor.h`, which both programs include."""
    return _resource("tensor.h")


def selftest_text(tolerances: Sequence[tuple[float, float]]) -> str:
    """The program that compares the model's outputs with stored ones, each within an absolute and a relative error."""
    rows = ", ".join(f"{{{absolute!r}, {relative!r}}}" for absolute, relative in tolerances)
    return _resource("selftest.c").replace("@TOLERANCES@", rows)


def _resource(name: str) -> str:
    return (files("msc.runtime") / "c" / name).read_text(encoding="utf-8")


def manifest_text(program: CProgram, sources: Sequence[str]) -> str:
    """`manifest.json` of a bundle: the signature, and where each parameter lies in the weights."""
    weights = [
        {"name": s.symbol, "offset": s.offset, "dtype": s.dtype, "shape": list(s.shape)} for s in program.weights
    ]
    data = {"signature": json.loads(program.signature.to_json()), "weights": weights, "files": sorted(sources)}
    return json.dumps(data, indent=2) + "\n"
