"""The obvious NumPy meaning of every operation: the oracle of all tests.

`evaluate` runs a module at the graph or the kernel stage, `evaluate_op` one operation, `evaluate_parameter` gives the
value of a parameter, derived ones included. `evaluate_loops` runs a module at the loop stage.
"""

from msc.interp.graph import Evaluator, Symbols, WeightSource, evaluate, evaluate_parameter
from msc.interp.loops import LoopProgram, evaluate_loops
from msc.interp.registry import evaluate_op, meaning

__all__ = [
    "Evaluator",
    "LoopProgram",
    "Symbols",
    "WeightSource",
    "evaluate",
    "evaluate_loops",
    "evaluate_op",
    "evaluate_parameter",
    "meaning",
]
