"""`data_sink`: a function that runs another one on the batches of a data set, one after the other."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msc.dataset import config
from msc.dataset.base import Dataset
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.jit import jit
from msc.frontend.settings import unused
from msc.support.argument_values import described
from msc.train.feeding import batches, tensors


def data_sink(
    fn: Callable[..., Any], dataset: Any, sink_size: Any = 1, jit_config: Any = None, input_signature: Any = None
) -> Callable[[], Any]:
    """A function without arguments: each call runs `fn` on the next `sink_size` batches, and gives its last result.

    After the last batch the data set begins anew. With a `jit_config` the function is compiled. Raises MSC0876.
    """
    unused("data_sink", input_signature=input_signature)
    if not callable(fn):
        raise ApiTypeError("MSC0876", f"data_sink takes a function, not {described(fn)}")
    if not isinstance(dataset, Dataset):
        raise ApiTypeError("MSC0876", f"dataset is {described(dataset)}; it takes a data set of msc.dataset")
    if isinstance(sink_size, bool) or not isinstance(sink_size, int) or sink_size < 1:
        raise ApiValueError("MSC0876", f"sink_size is {described(sink_size)}; it takes an integer of 1 or more")
    size = dataset.get_dataset_size()
    if not size:
        raise ApiValueError("MSC0876", "dataset has no batches: are there fewer rows than batch_size?")
    run: Any = fn if jit_config is None else jit(fn)
    feed, columns = batches(dataset, config.seed_of_a_run(), 0, size), dataset.columns

    def sink() -> Any:
        result: Any = None
        for _ in range(sink_size):
            result = run(*tensors(next(feed), columns))
        return result

    return sink
