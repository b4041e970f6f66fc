"""A hand-written program: what the C generator would hand to the runtime, without the generator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from msc.runtime.artifact import CompiledModel, load
from msc.runtime.build import build
from msc.runtime.program import CProgram, Signature, TensorSpec, WeightSlot

HEADER = """#ifndef SCALE_H
#define SCALE_H
#include <stddef.h>
#include <stdint.h>
#define SCALE_WORKSPACE_BYTES 64
#define SCALE_ALIGNMENT 64
extern const unsigned char scale_weights[];
extern const char scale_signature[];
int scale_run(const float *x, const int32_t *n, float *y, double *sum, void *workspace);
#endif
"""
SOURCE = """#include "scale.h"

int scale_run(const float *x, const int32_t *n, float *y, double *sum, void *workspace)
{
    const float *const w = (const void *)scale_weights;
    double *const scratch = workspace;
    *scratch = 0;
    for (int64_t i = 0; i < 6; ++i) {
        y[i] = x[i] * w[i % 3] + (float)n[0];
        *scratch += y[i];
    }
    *sum = *scratch;
    return 0;
}
"""
WEIGHTS = {"w": np.array([1, 2, 3], np.float32)}


def make_program(source: str = SOURCE) -> CProgram:
    signature = Signature(
        "scale",
        (TensorSpec("x", "x", "f32", (2, 3)), TensorSpec("n", "n", "i32", (1,))),
        (TensorSpec("y", "y", "f32", (2, 3)), TensorSpec("sum", "sum", "f64", ())),
        64,
        64,
        "0.1.0",
        "generic",
    )
    text = signature.to_json().replace('"', '\\"')
    full = f'{source}\nconst char scale_signature[] = "{text}";\n'
    return CProgram(full, HEADER, signature, (WeightSlot("w", 0, "f32", (3,)),), ())


@pytest.fixture
def program_of() -> Callable[..., CProgram]:
    return make_program


@pytest.fixture
def program() -> CProgram:
    return make_program()


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(make_program(), WEIGHTS, "so", tmp_path_factory.mktemp("model") / "scale.so")


@pytest.fixture
def model(model_path: Path) -> CompiledModel:
    return load(model_path)


@pytest.fixture
def weights() -> dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    return dict(WEIGHTS)
