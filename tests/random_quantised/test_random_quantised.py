"""A slice of the random quantised operators; `python -m tests.random_quantised` runs as many as one likes."""

from __future__ import annotations

import pytest

from tests.random_quantised.checking import difference, problems, runtime_results
from tests.random_quantised.machines import HOSTS, differences
from tests.random_quantised.networks import MAKERS, case


@pytest.mark.parametrize("name", MAKERS)
def test_results_are_those_of_the_contract(name: str) -> None:
    assert list(problems(case(name, 0))) == []


@pytest.mark.parametrize("machine", HOSTS)
def test_a_network_in_integers_gives_equal_bytes_on_each_machine(machine: str) -> None:
    if missing := HOSTS[machine].missing():
        pytest.skip(missing)
    assert list(differences(case("wide" if machine == "tiles" else "network", 4), [machine])) == []


def test_a_byte_off_is_found() -> None:
    made = case("qlinear_matmul", 0)
    values = runtime_results(made)[0]
    moved = values.copy()
    moved.flat[0] ^= 1
    assert difference(made, values, moved)
    assert not difference(made, values, values)
