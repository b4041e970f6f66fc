"""The discardable attributes of the `loop` dialect, by name."""

LOOP_OUTPUTS = "loop.outputs"
"""Of a kernel's function: how many of its arguments are outputs; they follow the inputs."""

LOOP_TEMPORARIES = "loop.temporaries"
"""Of a kernel's function: how many of its arguments are temporaries; they follow the outputs."""

LOOP_IN_PLACE = "loop.in_place"
"""Of a kernel's function: pairs (output, input), each counted from zero, that may share a buffer."""

LOOP_ORIGIN = "loop.origin"
"""Of a kernel's function: the kernels that it computes, for people."""

LOOP_SCHEDULE = "loop.schedule"
"""Of a kernel's function: the schedule that its loops come from."""

LOOP_CYCLES = "loop.cycles"
"""Of a kernel's function that a loop calls: the cycles of a call on one thread, as the cost model predicts them."""

LOOP_REASONS = "loop.reasons"
"""Of a function made of a loop: whether threads share it, and why."""

LOOP_CALLS = "loop.calls"
"""Of a function: how many calls of kernels it stands for."""

LOOP_OFFSET = "loop.offset"
"""Of a parameter: the offset of its bytes in the weights."""
