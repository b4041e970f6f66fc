"""The part of a shared library that msc itself calls: fixed names, one array of pointers instead of a prototype."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from msc.runtime.program import CProgram, Signature

SIGNATURE_SYMBOL = "msc_artifact_signature"
RUN_SYMBOL = "msc_artifact_run"
PROFILE_SYMBOL = "msc_artifact_profile"
CALLS_SYMBOL = "msc_artifact_calls"
START_SYMBOL = "msc_artifact_start"
WAIT_SYMBOL = "msc_artifact_wait"
CANCEL_SYMBOL = "msc_artifact_cancel"

RUNNING = -1
"""What waiting says of a call that goes on."""
CANCELLED = -2
"""What waiting says of a call that was ended."""
NO_STACK = -3
"""What a call returns that has not begun: the stack of its thread is too short."""

ERROR_INDEX = 5
"""What a call returns that was given an index outside, if it looks at indices; nothing has been written then."""

SPARE_STACK = 32 * 1024
"""Bytes of stack that a call needs besides the local arrays of its kernels."""
SMALL_STACK = 2 * 1024
"""Bytes of local arrays that are not worth asking for: every thread has them."""

_TEXT = """/* How msc calls the model: tensors are the inputs and outputs in the order of the signature, then the
   addresses of the sizes, 64-bit integers. */
#include "{name}.h"
#include <stddef.h>

enum {{ MSC_NO_STACK = {no_stack} }};

const char *{signature_symbol}(void)
{{
    return {name}_signature;
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
_RUN = """
static int msc_call_{number}(void *const *tensors, void *workspace, double *seconds)
{{
    {unused}{profiled}return {function}({arguments});
}}

int {run_symbol}(void *const *tensors, void *workspace)
{{
    {check}return msc_call_{number}(tensors, workspace, NULL);
}}
"""
_CALLS = """
__attribute__((visibility("hidden"))) int (*const msc_calls[])(void *const *, void *, double *) = {{{names}}};
"""
_PROFILED = """if (seconds)
        return {profile_symbol}(tensors, workspace, seconds);
    """
_ROOM = """__attribute__((visibility("hidden"))) int msc_has_room(size_t stack);

"""
_STATUSES = """enum {{ MSC_RUNNING = {running}, MSC_CANCELLED = {cancelled} }};
"""


def run_symbol(number: int) -> str:
    """The symbol of function `number` of the signature."""
    return f"{RUN_SYMBOL}_{number}" if number else RUN_SYMBOL


def artifact_text(program: CProgram) -> str:
    """The C of the interface, but for `calls_text`."""
    signature = program.signature
    looks = signature.stack_bytes > SMALL_STACK
    text = _filled(_TEXT + (_PROFILE if program.profiled else ""), signature)
    text += "\n" + _ROOM if looks else ""
    stack = signature.stack_bytes + SPARE_STACK
    check = f"if (!msc_has_room({stack}))\n        return MSC_NO_STACK;\n    " if looks else ""
    for number, function in enumerate(signature.functions):
        clocks = program.profiled and number == 0
        profiled = _PROFILED.format(profile_symbol=PROFILE_SYMBOL) if clocks else "(void)seconds;\n    "
        symbols = {"number": str(number), "run_symbol": run_symbol(number), "check": check, "profiled": profiled}
        text += _filled(_RUN, function, **symbols)
    return text + _CALLS.format(names=", ".join(f"msc_call_{number}" for number in range(len(signature.functions))))


@cache
def calls_text() -> str:
    """The C of the interface that is the same for all models: calls on threads of their own."""
    text = (files("msc.runtime") / "c" / "artifact_calls.c").read_text(encoding="utf-8")
    return _STATUSES.format(running=RUNNING, cancelled=CANCELLED) + text


def _filled(text: str, signature: Signature, **symbols: str) -> str:
    count = len(signature.inputs) + len(signature.outputs)
    sizes = (f"*(const int64_t *)tensors[{count + k}]" for k in range(len(signature.sizes)))
    return text.format(
        name=signature.name,
        function=signature.symbol,
        arguments=", ".join([*(f"tensors[{k}]" for k in range(count)), *sizes, "workspace"]),
        unused="" if count else "(void)tensors;\n    ",
        signature_symbol=SIGNATURE_SYMBOL,
        profile_symbol=PROFILE_SYMBOL,
        calls_symbol=CALLS_SYMBOL,
        no_stack=NO_STACK,
        **symbols,
    )
