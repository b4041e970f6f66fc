"""MindSpore's `context`: settings, of which the mode is the one that msc acts on."""

from msc.frontend.modes import GRAPH_MODE, PYNATIVE_MODE, get_context, reset_context, set_context

__all__ = ["GRAPH_MODE", "PYNATIVE_MODE", "get_context", "reset_context", "set_context"]
