"""A format of model files that another package brings: a chain of layers as JSON, one line each.

{"input": [1, 4]}
{"dense": [[0.5, 1.0, -1.0, 0.25]], "bias": [0.5]}
{"relu": true}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msc.formats.format import Format, Reading
from msc.support.diagnostics import Diagnostic, Location, MscError

if TYPE_CHECKING:
    from msc.importers.imported import Imported
    from msc.support.outputs import OutputSet


class LinesFormat(Format):
    """`msc compile net.lines`."""

    name = "lines"
    title = "a chain of layers"
    extensions = (".lines",)
    lacks = "all but dense layers and ReLU in a chain"

    def read(self, model: str, how: Reading) -> Imported:
        """The chain as a Cell that is captured. Raises MSC0001, and MSC0006 for a line that is no layer."""
        import numpy as np

        from msc import Parameter, Tensor, nn
        from msc.formats.capture import capture
        from msc.support.files import read_source

        shape: list[int] = []
        layers: list[Any] = []
        for number, line in enumerate(read_source(Path(model)).splitlines(), 1):
            try:
                match json.loads(line):
                    case {"input": [*sizes]}:
                        shape = [int(size) for size in sizes]
                    case {"dense": weight, "bias": bias}:
                        layer, array = nn.Dense(1, 1), np.array(weight, np.float32)
                        layer.weight = Parameter(Tensor(array))
                        layer.bias = Parameter(Tensor(np.array(bias, np.float32)))
                        layers.append(layer)
                    case {"relu": True}:
                        layers.append(nn.ReLU())
                    case _:
                        raise ValueError("no layer")
            except (ValueError, TypeError) as error:
                message = f"'{model}' has a line that is no layer: {error}"
                raise MscError(Diagnostic("MSC0006", message, Location(model, number, 1))) from error
        return capture(nn.SequentialCell(layers), [Tensor(np.zeros(shape, np.float32))])

    def write(self, model: Imported, path: Path, files: OutputSet) -> None:
        """Raises MSC0720 for a model that is no such chain."""
        from xdsl.ir import SSAValue

        from msc.dialects import ms
        from msc.dialects.ms.structure import GetParameterOp
        from msc.ir.entry import find_entry
        from msc.ir.typed import shape

        entry = find_entry(model.module)
        assert entry is not None
        value = entry.args[0]
        lines, weights = [json.dumps({"input": list(shape(value))})], dict[SSAValue, Any]()
        for op in entry.body.block.ops:
            match op:
                case GetParameterOp():
                    weights[op.result] = model.weights[op.symbol].tolist()
                    continue
                case ms.DenseOp() if op.operands[0] is value:
                    _, weight, bias = op.operands
                    lines.append(json.dumps({"dense": weights[weight], "bias": weights[bias]}))
                case ms.ReluOp() if op.operands[0] is value:
                    lines.append(json.dumps({"relu": True}))
                case _ if op.name == "func.return":
                    break
                case _:
                    raise MscError(Diagnostic("MSC0720", f"a .lines file has no {op.name}"))
            value = op.results[0]
        files.write(path, "\n".join(lines) + "\n", lambda _: False)
