from xdsl.dialects import get_all_dialects
from xdsl.transforms import get_all_passes

from msc.driver.universe import MSC


def test_our_names_do_not_clash_with_those_of_xdsl() -> None:
    assert {"ms", "gk", "loop"} <= MSC.all_dialects.keys()
    assert not MSC.all_dialects.keys() & get_all_dialects().keys()
    assert not MSC.all_passes.keys() & get_all_passes().keys()


def test_factories_load() -> None:
    assert all(load().name == name for name, load in MSC.all_dialects.items())
    assert all(load().name == name for name, load in MSC.all_passes.items())
