"""The discardable attributes of the `davinci` dialect, by name."""

DAVINCI_KERNEL = "davinci.kernel"
"""Of a `gk.kernel`, then of its function of loops: the kernel of queue instructions that runs on the cores."""
