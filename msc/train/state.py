"""All that a run needs to go on with the same bits: parameters, random numbers, and where in the data it is.

A checkpoint of a run holds, beside the parameters of the training step, `epoch_num` and `step_num`, as MindSpore's do,
`random_state`, `host_random_state` and `dataset_state`. Also the states of callbacks, the loss of the step, and how
many epochs have ended: that of the last step's has not, if an evaluation and callbacks at its end were still to come.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from msc.dataset import config
from msc.frontend.errors import ApiError, ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.randomness import generator
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.ops.philox import state as random_state
from msc.support.argument_values import file_path
from msc.train.callback.base import CALLBACK_PREFIX
from msc.train.serialization import load_checkpoint, load_param_into_net

_BUFFERED = 4
"""Numbers that NumPy's Philox generator makes at a time."""
_KEYS = ("epoch_num", "step_num", "random_state", "host_random_state", "dataset_state")


@dataclass
class Progress:
    """Where a run is: the seed of its data, how many steps were done and make an epoch, and how many epochs ended.

    Of a run that goes on also the loss of its last step, and the states of its callbacks by their names in checkpoints.
    """

    seed: int
    steps: int = 0
    steps_of_epoch: int = 0
    epochs_ended: int = 0
    loss: Tensor | None = None
    callbacks: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])

    def entries(self, epoch: int) -> dict[str, Any]:
        """What a checkpoint holds beside parameters."""
        return {
            "epoch_num": epoch,
            "step_num": self.steps,
            "random_state": Tensor(np.array(random_state().asnumpy())),
            "host_random_state": Tensor(_host_state()),
            "epochs_ended": self.epochs_ended,
            "dataset_state": Tensor(np.array([self.seed, self.steps, self.steps_of_epoch], np.int64)),
        }


def begun() -> Progress:
    """A run at its beginning, with the seed that was set, or one of its own."""
    return Progress(config.seed_of_a_run())


def _host_state() -> Any:
    """The state of NumPy's Philox generator as 64-bit words."""
    found = cast("dict[str, Any]", generator().bit_generator.state)
    words = [*found["state"]["counter"], *found["state"]["key"], *found["buffer"]]
    rest = [found["buffer_pos"], found["has_uint32"], found["uinteger"]]
    return np.array([int(word) for word in (*words, *rest)], np.uint64)


def _set_host_state(words: Any) -> None:
    bits = generator().bit_generator
    bits.state = {
        "bit_generator": "Philox",
        "state": {"counter": words[:4], "key": words[4:6]},
        "buffer": words[6:10],
        "buffer_pos": int(words[10]),
        "has_uint32": int(words[11]),
        "uinteger": int(words[12]),
    }


def newest(place: Any) -> Path | None:
    """The checkpoint that a path names: a file, or the newest one of a folder; None for a folder without any."""
    path = file_path("resume", place, "the path of a checkpoint, or of a folder of them")
    if not path.is_dir():
        if not path.exists():
            raise _unusable(path, "there is no such file")
        return path
    found = [file for file in path.iterdir() if file.suffix in (".ckpt", ".safetensors") and file.is_file()]
    return max(found, key=lambda file: (file.stat().st_mtime_ns, _numbers(file.name)), default=None)


def _numbers(name: str) -> list[int]:
    """Those in a name, for files of the same tick of the clock: step 10 is newer than step 9."""
    return [int(digits) for digits in re.findall(r"\d+", name)]


def restored(path: Path, network: Cell, optimizer: Any) -> Progress:
    """Give a training step and all random numbers the state of a checkpoint; where the run was. Raises MSC0879."""
    entries: Mapping[str, Parameter] = load_checkpoint(path)
    missing = [key for key in _KEYS if key not in entries]
    if missing:
        raise _unusable(path, f"it has no '{missing[0]}': ModelCheckpoint did not write it, or with saved_network")
    if "learning_rate" in entries and "learning_rate" not in network.parameters_dict():
        optimizer.changeable_rate()
    own = network.parameters_dict()
    absent = [name for name in own if name not in entries]
    if absent:
        raise _unusable(path, f"it has no parameter '{absent[0]}', which the network or its optimiser has")
    states = {key: _state(path, entries, key, like) for key, like in _states().items()}
    seed, steps, steps_of_epoch = (int(n) for n in states["dataset_state"])
    if steps < 0 or steps_of_epoch < 1:
        raise _unusable(path, f"its dataset_state counts {steps} steps, {steps_of_epoch} in an epoch")
    if not 0 <= int(states["host_random_state"][10]) <= _BUFFERED:
        raise _unusable(path, "its host_random_state is none of NumPy's Philox generator")
    ended = steps // steps_of_epoch
    if "epochs_ended" in entries:
        ended = int(_state(path, entries, "epochs_ended", np.int64(0)))
    load_param_into_net(network, {name: entries[name] for name in own}, strict_load=True)
    random_state().set_data(Tensor(states["random_state"]))
    _set_host_state(states["host_random_state"])
    callbacks = {name: value for name, value in entries.items() if name.startswith(CALLBACK_PREFIX)}
    return Progress(seed, steps, steps_of_epoch, ended, entries.get("loss"), callbacks)


def _states() -> dict[str, Any]:
    """Arrays of the shapes and types that the states of a run have."""
    return {
        "random_state": random_state().asnumpy(),
        "host_random_state": _host_state(),
        "dataset_state": np.zeros(3, np.int64),
    }


def _state(path: Path, entries: Mapping[str, Parameter], key: str, like: Any) -> Any:
    """A state of a run. Raises MSC0879 for what cannot be one."""
    found = entries[key].asnumpy()
    if found.shape != like.shape or found.dtype.kind not in "iu":
        kind = f"{found.dtype} of shape {list(found.shape)}"
        raise _unusable(path, f"its {key} is {kind}, and must be {like.dtype} of shape {list(like.shape)}")
    return found.astype(like.dtype)


def _unusable(path: Path, reason: str) -> ApiError:
    return ApiValueError("MSC0879", f"training cannot go on from '{path}': {reason}")
