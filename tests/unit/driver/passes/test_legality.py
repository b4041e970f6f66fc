"""Between stages only operations of the stage's closed list pass, in their places; and a model's memory is bounded."""

from pathlib import Path

import pytest

from msc.backends.registry import find_backend
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.driver.passes.legality import check_stage, verify_stage
from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module
from msc.support.diagnostics import MscError

TABLE = find_backend("cpu").table

GRAPH = (
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = ms.gelu %x\n  func.return %0 : tensor<4xf32>\n}\n"
)
COMPOSITE = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = gk.kernel "gelu" (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %1 = ms.gelu %a
    gk.yield %1 : tensor<4xf32>
  }
  func.return %0 : tensor<4xf32>
}
"""
FOREIGN = "func.func @main(%x: memref<4xf32>) {\n  memref.dealloc %x : memref<4xf32>\n  func.return\n}\n"


def check(text: str, stage: str) -> None:
    check_stage(parse_module(new_context(), text, "model.mir"), TABLE[stage])


def test_a_graph_is_a_graph() -> None:
    check(GRAPH, "graph")
    check(GRAPH, "opt")


@pytest.mark.parametrize(
    ("text", "stage", "message"),
    [
        (GRAPH, "gk", r"stage 'gk' holds kernels: 'ms.gelu' is outside kernels"),
        (COMPOSITE, "gk", r"stage 'gk' holds kernels: 'ms.gelu' is inside a kernel"),
        (COMPOSITE, "opt", r"'gk.kernel' is not an operation of stage 'opt'"),
        (GRAPH, "loop", r"'ms.gelu' is not an operation of stage 'loop'"),
        (
            GRAPH + "builtin.module @inner {\n}\n",
            "graph",
            r"'builtin.module' is not an operation of .* inside a module",
        ),
        (FOREIGN, "graph", r"'memref.dealloc' is not an operation of stage 'graph'"),
    ],
)
def test_other_operations_are_refused(text: str, stage: str, message: str) -> None:
    with pytest.raises(MscError, match=rf"MSC0209.*{message}"):
        check(text, stage)


def test_equal_mistakes_are_one_error_with_a_count() -> None:
    text = GRAPH.replace("ms.gelu %x", "ms.gelu %x\n  %1 = ms.relu %0\n  %2 = ms.relu %1")
    with pytest.raises(MscError) as raised:
        check(text, "gk")
    assert [(d.message.partition(":")[0], d.notes) for d in raised.value.diagnostics] == [
        ("stage 'gk' holds basic operations", ()),
        ("stage 'gk' holds kernels", ("2 more like this, in lines 3, 4",)),
    ]


def test_a_module_of_another_stage_is_one_error() -> None:
    """Whatever the number of its operations; the help names the stage."""
    context = new_context()
    module = parse_module(context, GRAPH, "model.mir")
    with pytest.raises(MscError) as raised:
        verify_stage(module, TABLE["loop"], context, {"model.mir": GRAPH}, TABLE.ir)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.message == "'ms.gelu' is not an operation of stage 'loop'"
    assert diagnostic.source_line is not None
    assert diagnostic.help == "this is a module of stage 'graph': --from graph reads it as one"


def test_the_sum_of_all_memory_is_bounded(model: Path) -> None:
    with pytest.raises(MscError, match=r"MSC0507.*the model needs .*\n.*weights .*workspace"):
        generate_c(compile_model(str(model), CompileOptions(march="generic", memory=200)))
