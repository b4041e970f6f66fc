"""Attributes of our dialects: each name stands in one place, and kernels' attributes are of their types."""

import ast
import re
from pathlib import Path

import pytest
from xdsl.utils.exceptions import VerifyException

import msc
from msc.dialects.gk import attributes as gk
from msc.dialects.loop import attributes as loop
from msc.dialects.ms import attributes as ms
from msc.dialects.ms.interface_attributes import check_interface
from msc.support.diagnostics import MscError
from tests.unit.graph_kernel.graphs import read

PACKAGE = Path(msc.__file__).parent
NAMES = {
    value
    for table in (ms, gk, loop)
    for key, value in vars(table).items()
    if key.isupper() and isinstance(value, str) and re.fullmatch(r"(ms|gk|loop)\.\w+", value)
}
KERNEL = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %b = gk.kernel "relu" (%x = %a : tensor<4xf32>) -> tensor<4xf32> attributes {{{attribute}}} {{
    %0 = ms.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    gk.yield %0 : tensor<4xf32>
  }}
  func.return %b : tensor<4xf32>
}}"""


def own_names(tree: ast.AST) -> set[ast.AST]:
    """What is assigned to `name`: a type of attributes may be called as the attribute that holds it."""
    return {n.value for n in ast.walk(tree) if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "name"}


def test_names_of_attributes_stand_in_the_dialects_only() -> None:
    assert len(NAMES) > 15
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "attributes.py":
            tree = ast.parse(path.read_text("utf-8"))
            nodes = set(ast.walk(tree)) - own_names(tree)
            constants = (n.value for n in nodes if isinstance(n, ast.Constant))
            assert not NAMES & {value for value in constants if isinstance(value, str)}, path


@pytest.mark.parametrize(
    ("attribute", "type_"),
    [
        ("gk.pattern = 1 : i64", "a string"),
        ('gk.reasons = "fused"', "a list of strings"),
        ("gk.reasons = [1 : i64]", "a list of strings"),
        ("gk.schedule_reasons = [1 : i64]", "a list of strings"),
        ('gk.function = "relu"', "a symbol, the name of a function"),
    ],
)
def test_an_attribute_of_a_kernel_of_another_type_is_refused(attribute: str, type_: str) -> None:
    with pytest.raises(VerifyException, match=rf"gk.kernel: '{attribute.split()[0]}' is {type_}"):
        read(KERNEL.format(attribute=attribute))


def test_former_names_lead_to_the_new_ones() -> None:
    with pytest.raises(VerifyException, match=r"'gk.live' is called 'gk.valid' now"):
        read(KERNEL.format(attribute="gk.live = []"))
    named = read(KERNEL.format(attribute="").replace("%a: tensor<4xf32>)", "%a: tensor<4xf32> {ms.live = 1 : i64})", 1))
    with pytest.raises(MscError) as error:
        check_interface(named, {})
    assert error.value.diagnostics[0].help == "it is called 'ms.valid' now"
