"""The part of a shared library that msc itself calls: fixed names, one array of pointers instead of a prototype."""

from __future__ import annotations

from msc.runtime.program import CProgram

SIGNATURE_SYMBOL = "msc_artifact_signature"
RUN_SYMBOL = "msc_artifact_run"
PROFILE_SYMBOL = "msc_artifact_profile"
CALLS_SYMBOL = "msc_artifact_calls"

_TEXT = """/* How msc calls the model: tensors are the inputs and outputs in the order of the signature, then the
   addresses of the sizes, 64-bit integers. */
#include "{name}.h"

const char *{signature_symbol}(void)
{{
    return {name}_signature;
}}

int {run_symbol}(void *const *tensors, void *workspace)
{{
    {unused}return {name}_run({arguments});
}}
"""
_PROFILE = """
const char *const *{calls_symbol}(void)
{{
    return {name}_calls;
}}

int {profile_symbol}(void *const *tensors, void *workspace, double *seconds)
{{
    {unused}return {name}_profile({arguments}, seconds);
}}
"""


def artifact_text(program: CProgram) -> str:
    """The C of the interface."""
    count = len(program.signature.inputs) + len(program.signature.outputs)
    sizes = (f"*(const int64_t *)tensors[{count + k}]" for k in range(len(program.signature.sizes)))
    arguments = ", ".join([*(f"tensors[{k}]" for k in range(count)), *sizes, "workspace"])
    text = _TEXT + (_PROFILE if program.profiled else "")
    return text.format(
        name=program.name,
        arguments=arguments,
        unused="" if count else "(void)tensors;\n    ",
        signature_symbol=SIGNATURE_SYMBOL,
        run_symbol=RUN_SYMBOL,
        profile_symbol=PROFILE_SYMBOL,
        calls_symbol=CALLS_SYMBOL,
    )
