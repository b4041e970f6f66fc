"""The discardable attributes of the `ms` dialect, by name, apart from those about sizes (`msc.dialects.open_sizes`)."""

MS_NAME = "ms.name"
"""Of an argument or a result of an entry function: its public name."""

MS_DTYPE = "ms.dtype"
"""Of an argument: its public element type, where the argument's own has no sign."""

MS_ROLE = "ms.role"
"""Of an argument of an entry function on buffers: "input", "state", "output", "size", "workspace" or "weights"."""

MS_CODES = "ms.codes"
"""Of an argument whose elements msc does not compute on: the type that they encode; the elements are its codes."""

MS_SCALE = "ms.scale"
"""Of an argument or a result whose integers stand for reals, `(integer - zero) * scale`: the scale, a float."""

MS_ZERO = "ms.zero"
"""Of one that has a scale: the zero point, an integer."""

MS_ORIGIN = "ms.origin"
"""Of an operation that an expander made: the short name of the composite one; kernels are labelled by it."""

MS_MESH = "ms.mesh"
"""Of a module: the mesh of devices that it runs on, as "dp=2,tp=4" (`msc/parallel/mesh.py`)."""

MS_SHARDING = "ms.sharding"
"""Of an argument, a result or a parameter: how it lies on the mesh, as "[dp, _]" (`msc/parallel/layouts.py`)."""

MS_SHARD = "ms.shard"
"""Of an operation: how its operands are to lie, as "[dp, _], *"; `*` leaves one open. A mark of the user's."""

MS_STRATEGY = "ms.strategy"
"""Of an operation: how each operand is cut, in parts or along axes, as `[[2, 1], null, "dp=2,tp=2 [dp, _]"]`."""

MS_LAYOUTS = "ms.layouts"
"""Of an operation: how its operands and results lie, as "[dp, _], [_, tp] -> [dp, tp]"."""

MS_PASS = "ms.pass"
"""Of an operation: its pass in a pipeline, as "backward 2 on 1": of micro-batch 2 on stage 1."""

MS_WEIGHTS = "ms.weights"
"""Of a module: its safetensors file, relative to the module's own."""

MS_WARNINGS = "ms.warnings"
"""Of a module: what users should know of it, as which kernels are slow and why. Artifacts keep it."""

MS_PRODUCER = "ms.producer"
"""Of a module: the program that the model comes from."""
