"""The stage tables: passes exist, find what they require, profit from each other, and lead from stage to stage."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from xdsl.passes import ModulePass

from msc.backends.backend import Backend
from msc.backends.registry import find_backend, found_backends
from msc.backends.stage import PassRun, Stage, StageTable, runs
from msc.driver.passes.instances import pass_instances, without
from msc.driver.passes.registry import all_passes, find_property, load_pass, makers
from msc.ir.contracts import contract_of, order_problems, reasons

BACKENDS = found_backends()
TABLES = [pytest.param(backend, id=backend.name) for backend in BACKENDS]
CPU = find_backend("cpu")


def borders(backend: Backend, names: Sequence[str] = ()) -> Iterator[tuple[Stage, Stage, Sequence[ModulePass]]]:
    """Each stage that passes make, with the one before it and the passes, without some optimisations."""
    ir = backend.table.ir
    for before, stage in pairwise(ir):
        yield before, stage, pass_instances(stage.passes, without(backend, names))


def problems(before: Stage, stage: Stage, passes: Sequence[ModulePass]) -> list[str]:
    given, wanted = (map(find_property, s.properties) for s in (before, stage))
    return order_problems(passes, [*given, *map(find_property, ("Unscheduled", "Unclustered", "Tensors"))], [*wanted])


@pytest.mark.parametrize("backend", TABLES)
def test_each_stage_is_made_of_what_the_one_before_promises(backend: Backend) -> None:
    for before, stage, passes in borders(backend):
        assert not problems(before, stage, passes)


@pytest.mark.parametrize("name", CPU.all_switches)
def test_no_optimisation_makes_what_another_pass_requires(name: str) -> None:
    for before, stage, passes in borders(CPU, (name,)):
        assert not problems(before, stage, passes)


@pytest.mark.parametrize("backend", TABLES)
def test_passes_run_after_those_that_they_profit_from_across_stages(backend: Backend) -> None:
    passes = [p for stage in backend.table.ir for p in pass_instances(stage.passes, {})]
    assert not [text for text in order_problems(passes) if " runs after " in text]


def test_reasons_are_about_passes_that_there_are() -> None:
    known = all_passes()
    for name in known:
        assert contract_of(load_pass(name)).runs_after.keys() <= known.keys()


def test_a_second_run_says_what_it_repairs() -> None:
    passes = [p for stage in CPU.table.ir for p in pass_instances(stage.passes, {})]
    explained = [
        {(reason.pass_name, reason.text) for reason in why}
        for item, why in zip(passes, reasons(passes), strict=True)
        if item.name == "hoist-parameters"
    ]
    assert [("pack-operands", "breaks WeightsHoisted") in why for why in explained] == [False, False, True]
    assert ("fold-batch-norm", "breaks WeightsHoisted") in explained[0]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["cluster-kernels", "expand-composites"], "cluster-kernels needs basic operations"),
        (["pack-operands"], "pack-operands needs kernels"),
        (["expand-composites", "fold-batch-norm"], "expand-composites runs after fold-batch-norm"),
    ],
)
def test_a_wrong_order_is_found(names: Sequence[str], problem: str) -> None:
    assert any(text.startswith(problem) for text in order_problems(pass_instances(runs(*names), {})))


def test_every_property_of_a_border_has_a_pass_that_makes_it() -> None:
    for backend in BACKENDS:
        for stage in backend.table.ir:
            assert all(makers(find_property(name)) for name in stage.properties)


@pytest.mark.parametrize("backend", TABLES)
def test_stages_of_ir_can_be_resumed_by_extension(backend: Backend) -> None:
    table = backend.table
    for stage in table.ir:
        assert table.of_file(f"some/model{stage.extension}") is stage
    assert table.of_file("model.mlir") is table["graph"]
    assert table.of_file("model.onnx") is None


@pytest.mark.parametrize("backend", TABLES)
def test_stages_have_distinct_names_and_extensions(backend: Backend) -> None:
    stages = backend.table.stages
    assert len({stage.name for stage in stages}) == len(stages) == len({stage.extension for stage in stages})


def test_options_of_a_run_are_those_of_its_pass() -> None:
    table = StageTable((Stage("s", ".s", "", "", passes=runs(PassRun("vectorize", {"enable": False}))),))
    (item,) = pass_instances(table["s"].passes, {})
    assert str(item.pipeline_pass_spec()) == "vectorize{enable=false}"
