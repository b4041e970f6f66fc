"""Programs that msc builds: right in their values, free of races, for whole tiles and for tails."""

from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir.affine import AffineExpr

from msc.backends.simulation.case_files import library_schedule
from msc.codegen.davinci.simulate import SimulationOptions, check_kernel, simulate_kernel
from msc.dialects.davinci import CrossCoreSyncOp, WaitFlagDevOp
from msc.ir.verification import verify_module
from msc.lowering.ascend.fused_matmul import fused_matmul_kernel
from msc.lowering.ascend.matmul import matmul_kernel, place_in_turn
from msc.lowering.ascend.vector import FORMULAS, inputs_of, vector_kernel, vector_schedule
from msc.schedule.cube.products import MatmulShape
from msc.schedule.cube.sharing import cores_of
from msc.support.diagnostics import MscError
from msc.targets.davinci import DavinciTarget, davinci_target

Reals = NDArray[np.float64]

B1, PR = davinci_target("ascend910b1"), davinci_target("ascend950pr")
CHECKED = SimulationOptions(functional=True, races=True)


def operands(shape: MatmulShape, dtype: Any = np.float16) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    a: NDArray[Any] = rng.integers(-4, 5, (shape.k, shape.m) if shape.transpose_a else (shape.m, shape.k)).astype(dtype)
    b: NDArray[Any] = rng.integers(-4, 5, (shape.n, shape.k) if shape.transpose_b else (shape.k, shape.n)).astype(dtype)
    return a, b


def product(shape: MatmulShape, wishes: dict[str, Any], dtype: Any = np.float16, out: Any = np.float16) -> None:
    kernel = matmul_kernel(shape, library_schedule(shape, B1, **wishes), B1)
    verify_module(ModuleOp([kernel]))
    a, b = operands(shape, dtype)
    c: NDArray[Any] = np.zeros((shape.m, shape.n), out)
    stored = [fractals(each, shape.c0) for each in (a, b)] if shape.fractal else [a, b]
    result = simulate_kernel(kernel, CHECKED, [*stored, c], [2])
    left: Reals = (a.T if shape.transpose_a else a).astype(np.float64)
    right: Reals = (b.T if shape.transpose_b else b).astype(np.float64)
    expected: NDArray[Any] = (left @ right).astype(out)
    np.testing.assert_array_equal(c, expected)
    assert result.macs == shape.m * shape.n * shape.k


def fractals(matrix: NDArray[Any], c0: int) -> NDArray[Any]:
    """A matrix as NZ has it: columns of 32 bytes, all rows of each; beyond the matrix is what must not count."""
    rows, columns = (-(-n // to) * to for n, to in zip(matrix.shape, (16, c0), strict=True))
    padded = np.full((rows, columns), 77, matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return np.ascontiguousarray(padded.reshape(rows, columns // c0, c0).swapaxes(0, 1))


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matmul_of_fractals(transpose_a: bool, transpose_b: bool) -> None:
    wishes = {"cores": 2, "base": (32, 64, 32), "depth_a1": 4, "depth_b1": 4, "big_packets": True}
    for m, n, k in ((128, 128, 128), (100, 90, 72)):
        product(MatmulShape(m, n, k, "f16", "f16", transpose_a, transpose_b, fractal=True), wishes)
    product(
        MatmulShape(50, 40, 60, "i8", "i32", transpose_a, transpose_b, fractal=True),
        {"base": (32, 32, 64)},
        np.int8,
        np.int32,
    )


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matmul(transpose_a: bool, transpose_b: bool) -> None:
    product(MatmulShape(128, 128, 128, "f16", "f16", transpose_a, transpose_b), {"cores": 2, "base": (64, 64, 64)})
    product(MatmulShape(100, 90, 72, "f16", "f16", transpose_a, transpose_b), {"cores": 2, "base": (32, 64, 32)})


@pytest.mark.parametrize(
    "wishes",
    [
        {"cores": 2, "base": (64, 64, 32), "depth_a1": 8, "depth_b1": 4, "big_packets": True, "unit_flag": True},
        {"cores": 2, "base": (64, 64, 32), "depth_a1": 4, "depth_b1": 8, "big_packets": True, "l2_split": (2, 1)},
        {"cores": 3, "base": (64, 64, 32), "depth_a1": 1, "depth_b1": 1, "big_packets": False},
        {"grid": (2, 2), "single": (192, 64), "base": (64, 64, 32), "double_buffer": False},
        {"base": (64, 32, 32), "cores": 3, "turns": True},
        {"base": (32, 64, 32), "cores": 5, "turns": True, "unit_flag": False},
        {},
    ],
)
def test_matmul_schedules(wishes: dict[str, Any]) -> None:
    product(MatmulShape(250, 128, 200, transpose_b=True), wishes)


@pytest.mark.parametrize("tiles", [(7, 3), (4, 6), (1, 5), (12, 1)])
@pytest.mark.parametrize("axis", ["m", "n"])
def test_cores_take_each_tile_once(tiles: tuple[int, int], axis: Literal["m", "n"]) -> None:
    extent, number = tiles[0 if axis == "m" else 1], AffineExpr.dimension(0)
    for high in (h for h in range(1, extent + 1) if extent % h == 0):
        row, column = place_in_turn(number, tiles, axis, high)
        taken = {(row.eval([k], []), column.eval([k], [])) for k in range(tiles[0] * tiles[1])}
        assert taken == {(m, n) for m in range(tiles[0]) for n in range(tiles[1])}


def test_few_cores_take_what_ends_before_the_others_start() -> None:
    step = B1.cores.launch_us * B1.clock.mhz
    assert cores_of(24, 100 * step, B1) == (24, 123 * step)
    assert cores_of(24, step, B1)[0] < 12


def test_matmul_of_integers() -> None:
    product(MatmulShape(48, 64, 96, "i8", "i32", transpose_b=True), {"cores": 2}, np.int8, np.int32)
    product(MatmulShape(48, 64, 96, "f32", "f32", transpose_b=True), {"cores": 2}, np.float32, np.float32)
    product(
        MatmulShape(40, 40, 50, "f32", "f32", transpose_a=True),
        {"base": (32, 32, 32)},
        np.float32,
        np.float32,
    )
    product(MatmulShape(64, 96, 80, "i8", "i32", transpose_a=True), {"base": (32, 32, 64)}, np.int8, np.int32)


@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (100, 80, 72), (33, 47, 40)])
@pytest.mark.parametrize(("machine", "via"), [(B1, "gm"), (PR, "gm"), (PR, "ub")])
def test_fused_matmul(m: int, n: int, k: int, machine: DavinciTarget, via: str) -> None:
    shape = MatmulShape(m, n, k, transpose_b=True)
    schedule = library_schedule(shape, machine, cores=2, base=(64, 64, 32))
    kernel = fused_matmul_kernel(shape, schedule, machine, "relu", via)
    verify_module(ModuleOp([kernel]))
    a, b = operands(shape)
    c = np.zeros((m, n), np.float16)
    simulate_kernel(kernel, CHECKED, [a, b, c], [2])
    np.testing.assert_array_equal(c, np.maximum(a.astype(np.float32) @ b.astype(np.float32).T, 0).astype(np.float16))


@pytest.mark.parametrize("left_out", [0, 1, 3, 4, 5])
def test_tiles_that_land_in_ub_wait_for_the_vector_cores(left_out: int) -> None:
    """Without one of the flags between the cores of a block the proof finds a race, or the kernel never ends."""
    shape = MatmulShape(128, 64, 64, transpose_b=True)
    schedule = library_schedule(shape, PR, cores=1, base=(64, 64, 32))
    kernel = fused_matmul_kernel(shape, schedule, PR, "relu", "ub")
    between = [op for op in kernel.walk() if isinstance(op, CrossCoreSyncOp | WaitFlagDevOp)]
    between[left_out].detach()
    with pytest.raises(MscError, match=r"MSC101[5-7]"):
        check_kernel(kernel)


def meaning(operation: str, x: Reals, y: Reals) -> Reals:
    """What an operation computes, in f64."""
    match operation:
        case "add" | "sub" | "mul" | "div" | "max" | "min":
            return {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y}.get(
                operation, np.maximum(x, y) if operation == "max" else np.minimum(x, y)
            )
        case "exp" | "ln" | "sqrt" | "rsqrt":
            return {"exp": np.exp(x), "ln": np.log(x), "sqrt": np.sqrt(x), "rsqrt": 1 / np.sqrt(x)}[operation]
        case "abs" | "relu":
            return np.abs(x) if operation == "abs" else np.maximum(x, 0)
        case "rec":
            return 1 / x
        case "neg" | "square":
            return -x if operation == "neg" else x * x
        case "tanh" | "silu":
            return np.tanh(x) if operation == "tanh" else x / (1 + np.exp(-x))
        case "sigmoid":
            return 1 / (1 + np.exp(-x))
        case _:
            return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("operation", sorted(FORMULAS))
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_vector(operation: str, dtype: str) -> None:
    kind = np.float16 if dtype == "f16" else np.float32
    total = 3001
    x, y = (np.random.default_rng(0).random((2, total)) + 0.5).astype(kind)
    z = np.zeros(total, kind)
    data = [x, y, z] if inputs_of(operation) == 2 else [x, z]
    for wishes in ({"cores": 3}, {"cores": 2, "elements": 512, "double_buffer": False}):
        schedule = vector_schedule(operation, total, dtype, B1, wishes)
        simulate_kernel(vector_kernel(operation, total, dtype, schedule, B1), CHECKED, data, [len(data) - 1])
        expected = meaning(operation, x.astype(np.float64), y.astype(np.float64))
        np.testing.assert_allclose(z.astype(np.float64), expected, rtol=5e-3 if dtype == "f16" else 1e-5)


def test_what_does_not_fit_is_told_of() -> None:
    shape = MatmulShape(512, 512, 512)
    refused: list[dict[str, Any]] = [
        {"base": (100, 64, 64)},
        {"base": (512, 512, 64)},
        {"base": (128, 256, 64), "depth_a1": 32, "depth_b1": 16},
    ]
    for wishes in refused:
        with pytest.raises(MscError, match="MSC1021"):
            library_schedule(shape, B1, **wishes)
    schedule = library_schedule(shape, B1)
    with pytest.raises(MscError, match="has no path 'ub'"):
        fused_matmul_kernel(shape, schedule, B1, "relu", "ub")
