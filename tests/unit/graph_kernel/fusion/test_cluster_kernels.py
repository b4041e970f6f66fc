"""What becomes one kernel, what does not, and the reasons that are recorded."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp

from msc.dialects.gk import KernelOp
from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.weights.hoist_parameters import HoistParameters
from msc.graph.weights.outline_constants import OutlineConstants
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from tests.unit.graph_kernel.graphs import function, main_of, random_inputs, results, run


def kernels(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.walk() if isinstance(op, KernelOp)]


def labels(module: ModuleOp) -> list[str]:
    return [kernel.label.data for kernel in kernels(module)]


def reasons(kernel: KernelOp) -> list[str]:
    recorded = kernel.attributes.get("gk.reasons")
    return [reason.data for reason in recorded.data] if isinstance(recorded, ArrayAttr) else []  # pyright: ignore


def clustered(arguments: str, body: str, **options: int | bool) -> ModuleOp:
    """The clustered module, which computes the same bit by bit."""
    module = run(function(arguments, body), ExpandComposites())
    after = run(module, ClusterKernels(**options))  # pyright: ignore[reportArgumentType]
    inputs = random_inputs(module)
    for expected, actual in zip(results(module, inputs), results(after, inputs), strict=True):
        np.testing.assert_array_equal(actual, expected)
    return after


M = "%x: tensor<8x16xf32>"


def test_elementwise_chain_is_one_kernel_with_its_constants() -> None:
    module = clustered(
        f"{M}, %b: tensor<16xf32>",
        "%a = ms.add %x, %b\n%c = ms.constant dense<2.0> : tensor<f32>\n%d = ms.mul %a, %c\n%y = ms.exp %d",
    )
    (kernel,) = kernels(module)
    assert labels(module) == ["add_mul_exp"]
    assert len(kernel.inputs) == 2
    assert len(list(main_of(module).body.block.ops)) == 2


def test_contraction_takes_an_epilogue_and_no_prologue() -> None:
    module = clustered(f"{M}, %w: tensor<16x4xf32>", "%a = ms.exp %x\n%b = ms.matmul %a, %w\n%y = ms.relu %b")
    assert labels(module) == ["exp", "matmul_relu"]
    first, second = kernels(module)
    assert reasons(first) == ["refused ms.matmul: a contraction reads its operands many times and takes no prologue"]
    assert reasons(second) == ["fused ms.relu into ms.matmul: elementwise epilogue, same shape 8x4"]


def test_two_contractions_stay_apart() -> None:
    module = clustered(f"{M}, %w: tensor<16x16xf32>", "%a = ms.matmul %x, %w\n%b = ms.relu %a\n%y = ms.matmul %b, %w")
    assert labels(module) == ["matmul_relu", "matmul"]


def test_epilogue_of_another_shape_is_refused() -> None:
    module = clustered(
        "%x: tensor<8x16xf32>, %w: tensor<16x4xf32>, %z: tensor<3x8x4xf32>", "%a = ms.matmul %x, %w\n%y = ms.add %a, %z"
    )
    assert labels(module) == ["matmul", "add"]
    assert reasons(kernels(module)[0]) == [
        "refused ms.add: an epilogue has the shape of the result, and this has 3x8x4, not 8x4"
    ]


def test_softmax_and_layer_norm_are_one_kernel_each() -> None:
    vectors = "%g: tensor<16xf32>, %b: tensor<16xf32>"
    module = clustered(f"{M}, {vectors}", "%a = ms.layer_norm %x, %g, %b\n%y = ms.softmax %a")
    assert labels(module) == ["layer_norm_softmax"]
    module = clustered(M, "%y = ms.softmax %x {axis = 0}")
    assert labels(module) == ["softmax"] * 4


def test_residual_add_in_front_of_a_norm_is_yielded_too() -> None:
    vectors = "%r: tensor<8x16xf32>, %g: tensor<16xf32>, %b: tensor<16xf32>, %w: tensor<16x16xf32>"
    module = clustered(
        f"{M}, {vectors}",
        "%s = ms.add %x, %r\n%n = ms.layer_norm %s, %g, %b\n%m = ms.matmul %n, %w\n%y = ms.add %s, %m",
    )
    assert labels(module) == ["add_layer_norm", "matmul_add"]
    assert len(kernels(module)[0].outputs) == 2


def test_row_reduction_without_kept_axes() -> None:
    module = clustered(M, "%a = ms.square %x\n%b = ms.reduce_sum %a {axis = [1]}\n%y = ms.sqrt %b")
    assert labels(module) == ["square_reduce_sum_sqrt"]


def test_vector_of_another_axis_stays_out_of_rows() -> None:
    """A row value and a vector along the row have one shape here: only the first belongs to the kernel."""
    module = clustered(
        "%x: tensor<8x8xf32>, %v: tensor<8xf32>",
        (
            "%w = ms.exp %v\n%a = ms.mul %x, %w\n%b = ms.reduce_sum %a {axis = [1], keep_dims = true}\n"
            "%y = ms.div %a, %b"
        ),
    )
    assert labels(module) == ["exp", "mul_reduce_sum_div"]


def test_no_cycle_through_a_third_kernel() -> None:
    module = clustered(f"{M}, %w: tensor<16x16xf32>", "%a = ms.exp %x\n%b = ms.matmul %a, %w\n%y = ms.add %a, %b")
    assert labels(module) == ["exp", "matmul_add"]
    module = clustered(
        f"{M}, %w: tensor<16x16xf32>",
        (
            "%a = ms.matmul %x, %w\n%r = ms.relu %a\n%p = ms.matmul %r, %w\n"
            "%q = ms.transpose %p {perm = [1, 0]}\n%t = ms.transpose %q {perm = [1, 0]}\n"
            "%y = ms.add %r, %t"
        ),
    )
    assert labels(module) == ["matmul_relu", "matmul", "transpose", "transpose_add"]
    assert "refused ms.transpose: another kernel is between the two" not in reasons(kernels(module)[0])


def test_views_stay_outside() -> None:
    module = clustered(M, "%a = ms.exp %x\n%b = ms.reshape %a {shape = [4, 32]}\n%y = ms.relu %b")
    assert labels(module) == ["exp", "relu"]
    assert [op.name for op in main_of(module).body.block.ops][1] == "ms.reshape"


def test_operations_of_several_statements_stay_alone() -> None:
    module = clustered(M, "%a = ms.exp %x\n%b = ms.concat %a, %x {axis = 1}\n%y = ms.relu %b")
    assert labels(module) == ["exp", "concat", "relu"]
    assert reasons(kernels(module)[1]) == ["refused ms.relu: an operation of several statements is a kernel of its own"]


def test_padding_of_a_convolution_shows_in_its_label() -> None:
    module = clustered("%x: tensor<1x2x5x5xf32>, %w: tensor<3x2x3x3xf32>", '%y = ms.conv2d %x, %w {pad_mode = "same"}')
    assert labels(module) == ["conv2d_pad", "conv2d"]


def test_limits_and_no_fusion() -> None:
    chain = "%a = ms.exp %x\n%b = ms.neg %a\n%c = ms.exp %b\n%y = ms.abs %c"
    assert labels(clustered(M, chain, max_operations=2)) == ["exp_neg", "exp_abs"]
    assert labels(clustered(M, chain, fuse=False)) == ["exp", "neg", "exp", "abs"]
    assert labels(clustered(M, "%a = ms.softmax %x\n%y = ms.softmax %a", max_reductions=2)) == ["softmax", "softmax"]


def test_gathers_of_one_shape_are_one_kernel_unless_one_reads_the_other() -> None:
    """As an interpolation gathers its neighbours, and an embedding the vectors of words and places."""
    arguments = f"{M}, %c: tensor<3xi1>, %d: tensor<3xi1>"
    indices = "%i = ms.cast %c {dtype = i64}\n%j = ms.cast %d {dtype = i64}\n"
    combined = "%a = ms.gather %x, %i {axis = 0}\n%b = ms.gather %x, %j {axis = 0}\n%s = ms.exp %b\n%y = ms.mul %a, %s"
    module = clustered(arguments, indices + combined)
    assert labels(module) == ["cast", "cast", "gather_exp_mul"]
    assert "fused ms.gather into ms.gather: operand of the epilogue, same shape" in reasons(kernels(module)[-1])
    nested = "%a = ms.gather %x, %i {axis = 0}\n%y = ms.gather %a, %j {axis = 0}"
    assert labels(clustered(arguments, indices + nested)) == ["cast", "cast", "gather", "gather"]


def test_what_matrix_and_vector_units_have_decides_what_fuses() -> None:
    rows = "%i = ms.cast %c {dtype = i64}\n%a = ms.gather %x, %i {axis = 0}\n%y = ms.exp %a"
    assert labels(clustered(f"{M}, %c: tensor<3xi1>", rows)) == ["cast", "gather_exp"]
    assert labels(clustered(f"{M}, %c: tensor<3xi1>", rows, gathers=False)) == ["cast", "gather", "exp"]
    wide = "%a = ms.exp %x\n%b = ms.cast %a {dtype = i64}\n%y = ms.neg %b"
    assert labels(clustered(M, wide)) == ["exp_cast_neg"]
    assert labels(clustered(M, wide, wide_types=False)) == ["exp", "cast_neg"]


def test_sums_with_other_readers_leave_the_matrix_unit_first() -> None:
    shared = (
        "%a = ms.matmul %x, %w\n%b = ms.abs %a\n%c = ms.exp %b\n%d = ms.reduce_sum %b {axis = [0]}\n%y = ms.add %c, %d"
    )
    arguments = f"{M}, %w: tensor<16x16xf32>"
    assert labels(clustered(arguments, shared, prologues=False))[0] == "matmul_abs_exp"
    module = clustered(arguments, shared, prologues=False, shared_sums=False)
    assert labels(module)[0] == "matmul_abs"
    one = "the matrix unit's kernels have one result, and this one has other readers"
    assert any(reason.startswith("refused") and reason.endswith(one) for reason in reasons(kernels(module)[0]))


def test_long_labels_are_cut() -> None:
    chain = "\n".join(f"%v{i + 1} = ms.{('reciprocal', 'softplus')[i % 2]} %v{i}" for i in range(20))
    (label,) = labels(clustered("%v0: tensor<4xf32>", f"{chain}\n%y = ms.exp %v20"))
    assert len(label) <= 48
    assert label.endswith("_etc")


def test_kernels_inside_branches() -> None:
    body = (
        "%y = scf.if %c -> (tensor<8x16xf32>) {\n%a = ms.exp %x\n%b = ms.neg %a\nscf.yield %b : tensor<8x16xf32>\n"
        "} else {\n%d = ms.abs %x\nscf.yield %d : tensor<8x16xf32>\n}"
    )
    module = run(function(f"{M}, %c: i1", body), ClusterKernels())
    assert labels(module) == ["exp_neg", "abs"]


def test_kernels_that_are_there_stay_as_they_are() -> None:
    module = clustered(M, "%a = ms.exp %x\n%y = ms.softmax %a")
    assert str(run(module, ClusterKernels(), HoistParameters(), OutlineConstants())) == str(module)
