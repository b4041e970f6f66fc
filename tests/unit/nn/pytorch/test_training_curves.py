"""The command that compares training runs with PyTorch's."""

import pytest

from tests.training_curves.__main__ import parsed
from tests.training_curves.compare import NETWORKS


def test_all_networks_unless_some_are_named() -> None:
    assert parsed([]).networks == list(NETWORKS)
    assert parsed(["lstm", "mlp-b64"]).networks == ["lstm", "mlp-b64"]


def test_a_name_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(["lstn"])
    assert "no network 'lstn'" in capsys.readouterr().err
