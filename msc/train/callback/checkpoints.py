"""`ModelCheckpoint`: checkpoints while a model is trained."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import glob
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.parallel import is_distributed
from msc.frontend.process_group import broadcast_from_first, is_first_rank
from msc.frontend.settings import unused
from msc.frontend.sharing import gather
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.support.argument_values import file_path
from msc.support.files import make_folder
from msc.train.background import WRITER
from msc.train.callback.base import RunContext, Saving, count, loss_of, refuse, wrong
from msc.train.encryption import check_key
from msc.train.serialization import save_checkpoint


class CheckpointConfig:
    """When checkpoints are written and which are kept.

    Every `save_checkpoint_steps` steps, or `save_checkpoint_seconds` after the last one; at the end only if both are 0
    or None. The newest `keep_checkpoint_max` are kept, or one for each `keep_checkpoint_per_n_minutes`. `saved_network`
    is written in place of the training step: then no run can go on from it. `append_info` has names and values to write
    as well. `exception_save` writes a file also when training ends in an error. `async_save`, `enc_key`, `enc_mode`,
    `crc_check` and `format` are those of `save_checkpoint`.
    """

    def __init__(
        self,
        save_checkpoint_steps: int | None = 1,
        save_checkpoint_seconds: int | None = 0,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_per_n_minutes: int | None = 0,
        integrated_save: bool = True,
        async_save: bool | str = False,
        saved_network: Cell | None = None,
        append_info: Sequence[Any] | None = None,
        enc_key: bytes | None = None,
        enc_mode: str = "AES-GCM",
        exception_save: bool = False,
        crc_check: bool = False,
        remove_redundancy: bool = False,
        format: str | None = None,
    ) -> None:
        unused("CheckpointConfig", integrated_save=integrated_save, remove_redundancy=remove_redundancy)
        if enc_key is not None:
            check_key("enc", enc_key, enc_mode)
        self.saving: dict[str, Any] = {
            **{"async_save": async_save, "enc_key": enc_key, "enc_mode": enc_mode},
            **{"crc_check": crc_check, "format": format},
        }
        """How files are written, as `save_checkpoint` takes it."""
        self.save_checkpoint_steps = count("save_checkpoint_steps", save_checkpoint_steps or 0, 0)
        self.save_checkpoint_seconds = count("save_checkpoint_seconds", save_checkpoint_seconds or 0, 0)
        self.keep_checkpoint_max = count("keep_checkpoint_max", keep_checkpoint_max or 0, 0)
        self.keep_checkpoint_per_n_minutes = count(
            "keep_checkpoint_per_n_minutes", keep_checkpoint_per_n_minutes or 0, 0
        )
        if saved_network is not None and not isinstance(saved_network, Cell):  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("saved_network", saved_network, "a Cell")
        self.saved_network, self.exception_save = saved_network, bool(exception_save)
        self.append_dict: dict[str, Any] = {}
        for item in append_info or ():
            if isinstance(item, Mapping):
                self.append_dict |= dict(item)
            elif item not in ("epoch_num", "step_num"):
                refuse("append_info", item, "'epoch_num', 'step_num', which are always there, and dictionaries")


class ModelCheckpoint(Saving):
    """Writes `<prefix>-<epoch>_<step of the epoch>.ckpt` in a folder; each file is there as a whole or not at all.

    A file holds the training step with the states of its optimiser, of random numbers and of the data:
    `Model.train(..., resume=directory)` goes on from the newest. A run that begins does not touch the files of an
    earlier one: if there are any of this prefix, its own have the next of `<prefix>_1`, `<prefix>_2`, ...
    """

    def __init__(
        self, prefix: str = "CKP", directory: str | Path | None = None, config: CheckpointConfig | None = None
    ) -> None:
        if not isinstance(prefix, str) or not prefix or "/" in prefix:  # pyright: ignore[reportUnnecessaryIsInstance]
            wrong(f"prefix is {prefix!r}; it takes the beginning of a file's name")
        if config is not None and not isinstance(config, CheckpointConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("config", config, "a CheckpointConfig")
        self._prefix, self._folder = prefix, Path(".") if directory is None else file_path("directory", directory)
        self._config = config or CheckpointConfig()
        self._latest: Path | None = None

    @property
    def latest_ckpt_file_name(self) -> str:
        """The newest file that this callback wrote, or nothing."""
        return "" if self._latest is None else str(self._latest)

    def on_train_begin(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        make_folder(self._folder)
        self._name = self._prefix if facts.resumed else self._unused_name()
        self._kept: list[tuple[float, Path]] = self._written_before() if facts.resumed else []
        self._step, self._time = facts.cur_step_num or 0, time.monotonic()

    def _unused_name(self) -> str:
        pattern = re.compile(rf"{re.escape(self._prefix)}(?:_(\d+))?-\d+_\d+\.(?:ckpt|safetensors)")
        found = [match for path in self._folder.iterdir() if (match := pattern.fullmatch(path.name))]
        return f"{self._prefix}_{max(int(m[1] or 0) for m in found) + 1}" if found else self._prefix

    def _written_before(self) -> list[tuple[float, Path]]:
        pattern = re.compile(rf"{re.escape(self._prefix)}-(\d+)_(\d+)\.(?:ckpt|safetensors)")
        found = [(m, path) for path in self._folder.iterdir() if (m := pattern.fullmatch(path.name))]
        for unfinished in self._folder.glob(f".{glob.escape(self._prefix)}-*.ckpt.*.tmp"):
            with suppress(OSError):
                unfinished.unlink()
        ordered = sorted(found, key=lambda item: (int(item[0][1]), int(item[0][2])))
        return [(time.monotonic(), path) for _, path in ordered]

    def on_train_step_end(self, run_context: RunContext) -> None:
        facts, config = run_context.original_args(), self._config
        by_steps, by_time = config.save_checkpoint_steps, config.save_checkpoint_seconds
        due = bool(by_steps) and facts.cur_step_num - self._step >= by_steps
        due |= not by_steps and bool(by_time) and time.monotonic() - self._time >= by_time
        if by_time and is_distributed():  # clocks differ, and all ranks save at one step
            due = bool(broadcast_from_first("whether a checkpoint is due", np.array(due)))
        if due:
            self._save(facts)

    def on_train_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        if facts.cur_step_num > self._step:
            self._save(facts)
        WRITER.finish()

    def on_train_failure(self, run_context: RunContext) -> None:
        """Training ends in an error: what it reached is written, if that was asked for."""
        facts = run_context.original_args()
        if self._config.exception_save and facts.cur_step_num:
            self._save(facts, "_breakpoint")

    def _save(self, facts: Any, ending: str = "") -> None:
        gather(facts.train_network.get_parameters())
        if not is_first_rank():  # all ranks have the same
            self._step, self._time = facts.cur_step_num, time.monotonic()
            return
        step = (facts.cur_step_num - 1) % facts.batch_num + 1
        suffix = ".safetensors" if self._config.saving["format"] == "safetensors" else ".ckpt"
        path = self._folder / f"{self._name}-{facts.cur_epoch_num}_{step}{ending}{suffix}"
        network = self._config.saved_network or facts.train_network
        state = {} if self._config.saved_network is not None else self._state(facts)
        save_checkpoint(network, path, append_dict=state | self._config.append_dict, **self._config.saving)
        self._step, self._time, self._latest = facts.cur_step_num, time.monotonic(), path
        facts.latest_ckpt_file = str(path)
        self._kept = [(when, other) for when, other in self._kept if other != path] + [(self._time, path)]
        self._forget()

    def _state(self, facts: Any) -> dict[str, Any]:
        """What a run needs to go on, beside parameters."""
        loss = loss_of(facts.net_outputs)
        entries = facts.progress.entries(facts.cur_epoch_num) | facts.callbacks.states()
        return entries if loss is None else {**entries, "loss": Tensor(loss, dtypes.float64)}

    def _forget(self) -> None:
        most, minutes = self._config.keep_checkpoint_max, self._config.keep_checkpoint_per_n_minutes
        while most and len(self._kept) > most:
            self._remove(0)
        if not most and minutes and len(self._kept) > 2 and self._kept[-2][0] - self._kept[-3][0] < 60 * minutes:
            self._remove(-2)

    def _remove(self, place: int) -> None:
        _, path = self._kept.pop(place)
        with suppress(OSError):
            path.unlink()

    def on_eval_begin(self, run_context: RunContext) -> None:
        pass

    on_eval_epoch_begin = on_eval_step_begin = on_eval_step_end = on_eval_epoch_end = on_eval_end = on_eval_begin
