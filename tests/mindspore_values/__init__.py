"""Functions that both msc and MindSpore have, on equal arguments: values and element types.

`recorded.json` holds what MindSpore 2.10 gives for the expressions of `cases.txt`; the suite compares with it, and
`python -m tests.mindspore_values PYTHON`, with a Python that has MindSpore, records it again and prints differences.
"""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
CASES = [line for line in (FOLDER / "cases.txt").read_text("utf-8").splitlines() if line and not line.startswith("#")]
RECORDED: dict[str, Any] = (
    json.loads((FOLDER / "recorded.json").read_text("utf-8")) if (FOLDER / "recorded.json").exists() else {}
)


REASONS = {
    "sl.lu(m)": "P has the element type of L and U, so that their product is the matrix; MindSpore's is Int32",
    "ops.Adam()": "MindSpore gives zeros on the CPU where the parameters are used only once",
    "mnp.ravel_multi_index": "places are integers; MindSpore's are Float32, which is exact up to 2^24",
}
"""How expressions begin whose results differ, and why."""


def arguments(tensor: Any) -> dict[str, Any]:
    """The arguments that expressions name, as tensors of a library."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(3, 4)).astype(np.float32)
    m = draw.normal(size=(4, 4)).astype(np.float32)
    batch = draw.normal(size=(2, 3, 3)).astype(np.float32)
    arrays = {
        "x": x,
        "y": draw.normal(size=(3, 4)).astype(np.float32),
        "p": (np.abs(x) + 0.5).astype(np.float32),
        "u": np.tanh(x),
        "i": draw.integers(-5, 9, (3, 4)).astype(np.int32),
        "j": draw.integers(1, 9, (3, 4)).astype(np.int32),
        "b": x > 0,
        "v": draw.normal(size=5).astype(np.float32),
        "w": np.array([0.5, 1.5, 2.5, 3.5, 8.25], np.float32),
        "n": np.array([1, 2, 2, 3, 3, 3, 1], np.int32),
        "r": np.array([2, 0, 1, 1], np.int32),
        "m": m,
        "spd": (m @ m.T + 4 * np.eye(4)).astype(np.float32),
        "q": batch,
        "sym": (batch + batch.transpose(0, 2, 1)).astype(np.float32),
        "img": draw.normal(size=(1, 2, 6, 6)).astype(np.float32),
        "nan": np.where(x > 0.5, np.nan, x).astype(np.float32),
        "inf": np.array([1.0, -np.inf, np.inf, np.nan, -0.0], np.float32),
    }
    return {name: tensor(array) for name, array in arrays.items()}


def plain(value: Any) -> Any:
    """A result as JSON: element type, shape and elements of tensors, in structures."""
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if hasattr(value, "asnumpy"):
        array = value.asnumpy()
        return {
            "type": str(value.dtype),
            "shape": list(array.shape),
            "values": [_short(v) for v in array.reshape(-1).tolist()],
        }
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _short(value: Any) -> Any:
    return float(f"{value:.7g}") if isinstance(value, float) else value


def differences(found: Any, wanted: Any, tolerance: float = 1e-4) -> str:
    """What is other between two results, or nothing."""
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return f"another structure: {found} for {wanted}"[:200]
        return next((d for a, b in zip(found, wanted, strict=True) if (d := differences(a, b, tolerance))), "")
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return f"no tensor: {found}"[:200]
        if found["type"] != wanted["type"] or found["shape"] != wanted["shape"]:
            return f"{found['type']} {found['shape']} for {wanted['type']} {wanted['shape']}"
        a, b = (np.array(side["values"], np.float64) for side in (found, wanted))
        with np.errstate(invalid="ignore"):
            worst = np.abs(a - b) / (1 + np.abs(b))
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (worst < tolerance)
        return (
            ""
            if same.all()
            else f"values differ by {np.nanmax(np.where(same, 0, worst))}: {a.tolist()[:6]} for {b.tolist()[:6]}"
        )
    return "" if found == wanted else f"{found} for {wanted}"


def evaluated(library: Any, scope: dict[str, Any], text: str) -> Any:
    """What an expression gives with a library."""
    names = {"ms": library, "np": np, **{n: getattr(library, n) for n in ("ops", "nn", "Tensor", "Parameter")}, **scope}
    return plain(eval(text, names))
