"""The stage table: its passes exist, stand in the order that their reasons ask for, and lead from stage to stage."""

from collections.abc import Sequence

import pytest

from msc.driver.passes.pipeline import build_pipeline
from msc.driver.passes.stages import IR_STAGES, ORDER, STAGE, STAGES, order_violations, stage_of_file

SETTINGS = {"march": "x86-64-v3", "threads": 1, "tuned": ""}


def all_passes() -> Sequence[str]:
    return [spec for stage in STAGES for spec in stage.pipeline(SETTINGS)]


def test_the_order_of_the_passes_has_its_reasons() -> None:
    assert not order_violations(all_passes())


def test_every_reason_is_about_passes_of_the_table() -> None:
    names = {spec.partition("{")[0] for spec in all_passes()}
    assert {name for rule in ORDER for name in (rule.before, rule.after)} <= names


@pytest.mark.parametrize("passes", [["cluster-kernels", "expand-composites"], ["cluster-kernels"]])
def test_a_wrong_order_is_found(passes: Sequence[str]) -> None:
    assert any("expand-composites must run before cluster-kernels" in line for line in order_violations(passes))


def test_all_passes_are_registered() -> None:
    for stage in STAGES:
        assert len(build_pipeline(",".join(stage.pipeline(SETTINGS)))) == len(stage.passes)


def test_stages_of_ir_can_be_resumed_by_extension() -> None:
    for stage in IR_STAGES:
        assert stage_of_file(f"some/model{stage.extension}") is stage
    assert stage_of_file("model.onnx") is None


def test_stages_have_distinct_names_and_extensions() -> None:
    assert len(STAGE) == len(STAGES) == len({stage.extension for stage in STAGES})
