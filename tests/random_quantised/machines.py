"""Networks in integers on several machines, which give equal bytes: sums of integers leave no freedom."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from xdsl.context import Context

from msc.backends.registry import find_backend
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.graph.simplify.quantised_products import QuantisedProducts
from msc.importers.onnx import import_proto
from msc.interp import evaluate
from tests.random_quantised.operators import Case
from tests.targets.elsewhere import compiled
from tests.targets.machines import MACHINES, Host

VNNI = Host("znver4", "gcc", packages="gcc", native="x86_64")
"""512 bits and instructions that sum four products of bytes."""
TILES = Host(str(Path(__file__).with_name("tiles.toml")), "gcc", packages="gcc", native="x86_64")
"""Tiles of memory (AMX), for products of any size."""
HOSTS = {"vnni": VNNI, "tiles": TILES, **{name: MACHINES[name] for name in ("avx512", "avx2", "generic", "neon")}}
"""By name: the first sums bytes as they are, the next two in 16 bits, the others in 32."""


def differences(case: Case, names: Sequence[str]) -> Iterator[str]:
    """On which machines the C of a case in integers gives other bytes than the interpreter: one text each."""
    for name in names:
        if HOSTS[name].missing():
            continue
        imported = import_proto(case.model)
        QuantisedProducts(always=True).apply(Context(), imported.module)
        meant = evaluate(imported.module, case.inputs, imported.weights)
        model = LoadedModel.in_memory(imported, find_backend("cpu"))
        with tempfile.TemporaryDirectory(prefix="msc-quantised-") as folder:
            made = compiled(model, CompileOptions(), HOSTS[name], (), Path(folder))
            found = made.results(**case.inputs)
        for number, (right, got) in enumerate(zip(meant, found, strict=True)):
            if right.tobytes() != got.tobytes():
                yield f"output {number} on {name}: {(right != got).sum()} of {right.size} differ from the interpreter"
