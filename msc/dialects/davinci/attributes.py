"""The discardable attributes of the `davinci` dialect, by name."""

DAVINCI_KERNEL = "davinci.kernel"
"""Of a `gk.kernel`, then of its function of loops: the kernel of queue instructions that runs on the cores."""

DAVINCI_SCHEDULE = "davinci.schedule"
"""Of a `gk.kernel`: the schedule that its kernel of queue instructions follows."""

DAVINCI_REASONS = "davinci.reasons"
"""Of a `gk.kernel`: why its kernel of queue instructions is as it is."""
