"""What goes wrong among ranks ends in words, within seconds: killed ranks, other programs, full disks.

    python -m tests.unit.parallel.test_faults

runs all of the faults by mpirun; the suite has one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from msc.frontend import process_group
from msc.parallel.traffic import check_meetings, meetings, meetings_text, read_meetings
from msc.support.diagnostics import MscError
from tests.unit.parallel.programs import module_from, mpirun, needs_mpi

PROGRAM = """
import os, resource, signal
import numpy as np
import msc
import msc.dataset as ds
from msc import nn
from msc.communication import get_rank, init

init()
rank = get_rank()
msc.set_auto_parallel_context(parallel_mode="semi_auto_parallel", mesh="dp=2")
msc.set_context(mode=msc.GRAPH_MODE)
msc.set_seed(1)
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
x, y = np.ones((80, 8), np.float32), np.ones((80, 4), np.float32)


class At(msc.Callback):
    def step_end(self, context):
        step = context.original_args().cur_step_num
        AT


FAULT
model = msc.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.01))
config = msc.CheckpointConfig(save_checkpoint_steps=2)
model.train(1, ds.NumpySlicesDataset((x, y)).batch(4), callbacks=[At(), msc.ModelCheckpoint("net", "saved", config)])
"""
FAULTS = {
    "killed": ("", "if rank == 1 and step == 3: os.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
    "other model": ("if rank == 1: net = nn.Dense(8, 4)", "pass", "MSC1104"),
    "full disk": ("", "if rank == 0: resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))", "rank 0 ended"),
}
"""What ranks do before training, what they do after a step, and a word of what is said."""


def check(fault: str, folder: Path) -> None:
    """Within seconds all ranks end, in words; checkpoints before stay."""
    before, at, words = FAULTS[fault]
    (folder / "train.py").write_text(PROGRAM.replace("AT\n", at + "\n").replace("FAULT", before), "utf-8")
    ran = mpirun(2, [sys.executable, "train.py"], folder, seconds=240)
    assert ran.returncode not in (0, 110), ran.stdout  # 110: the time was over
    assert words in ran.stderr + ran.stdout, ran.stderr
    assert fault != "killed" or list((folder / "saved").glob("*.ckpt"))


@needs_mpi
def test_a_killed_rank_ends_all(tmp_path: Path) -> None:
    check("killed", tmp_path)


TEXT = """builtin.module {{
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
    {lines}
    func.return %z : tensor<4xf32>
  }}
}}
"""
REDUCE = "ms.all_reduce {0} {{ranks = [{1}]}}"


def program(*lines: str) -> Any:
    values = ["%x", *(f"%y{k}" for k in range(1, len(lines))), "%z"]
    texts = [f"{values[k + 1]} = {line.format(values[k])}" for k, line in enumerate(lines)]
    return module_from(TEXT.format(lines="\n    ".join(texts)))


FIRST, SECOND, ALL = (f"ms.all_reduce {{}} {{{{ranks = {ranks}}}}}" for ranks in ([0, 1], [1, 2], [0, 1, 2]))


def test_programs_that_meet() -> None:
    """Sequences of the ranks go as text from rank to rank, and are let meet step by step."""
    same = program(FIRST, SECOND, ALL, "ms.neg {}")
    check_meetings([read_meetings(meetings_text(meetings(same, rank))) for rank in range(3)])


@pytest.mark.parametrize(
    "programs",
    [
        [(FIRST, ALL), (ALL, FIRST), (FIRST, ALL)],
        [(ALL,), (ALL,), ("ms.neg {}",)],
        [(ALL,), ('ms.all_reduce {} {{ranks = [0, 1, 2], reduce = "max"}}',), (ALL,)],
        [("ms.send_recv {} {{ranks = [0], to = [1]}}", ALL), (ALL,), (ALL,)],
    ],
)
def test_programs_that_do_not_meet_are_refused(programs: list[tuple[str, ...]]) -> None:
    with pytest.raises(MscError, match=r"MSC1104.*rank \d would wait for ever: its collective \d is ms\."):
        check_meetings([meetings(program(*lines), rank) for rank, lines in enumerate(programs)])


def test_ranks_of_other_versions_are_refused() -> None:
    process_group.check_versions([("0.1.0", "3.11.2", "2.0.0")] * 4)
    with pytest.raises(MscError, match=r"MSC1111.*rank 0 has msc 0\.1\.0.*rank 2 has msc 0\.2\.0"):
        process_group.check_versions([("0.1.0", "3.11.2", "2.0.0")] * 2 + [("0.2.0", "3.11.2", "2.0.0")])


if __name__ == "__main__":
    for each in FAULTS:
        with TemporaryDirectory() as folder:
            check(each, Path(folder))
            sys.stdout.write(f"{each}: ended in words\n")
