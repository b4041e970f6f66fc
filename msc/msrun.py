"""`python -m msc.msrun --worker_num=4 train.py`: a program on several ranks, by mpirun. Also installed as `msrun`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from msc.support.diagnostics import Diagnostic, MscError

_ADVICE = "write msrun --worker_num=4 train.py; --hostfile=FILE names machines, as mpirun takes it"
_UNUSED = ("local_worker_num", "master_addr", "master_port", "node_rank", "join", "log_dir", "cluster_time_out")
"""Options of MindSpore's msrun that mpirun decides itself."""


def command(arguments: Sequence[str]) -> list[str]:
    """The command of mpirun. Raises MSC1108 for arguments that msrun does not take, and MSC1105 without MPI."""
    options, program = _parsed(list(arguments))
    workers = options.get("worker_num", "")
    if not workers.isdigit() or int(workers) < 1 or not program:
        raise MscError(Diagnostic("MSC1108", f"msrun: worker_num is {workers or 'missing'}", help=_ADVICE))
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        help = "apt-get install openmpi-bin libopenmpi-dev, and pip install 'msc-compiler[parallel]'"
        raise MscError(Diagnostic("MSC1105", "msrun starts ranks by mpirun, and there is none", help=help))
    hosts = ["--hostfile", options["hostfile"]] if "hostfile" in options else ["--oversubscribe"]
    limit = ["--timeout", options["timeout"]] if "timeout" in options else []
    python = [sys.executable] if program[0].endswith(".py") else []
    return [mpirun, *hosts, *limit, "-n", workers, *python, *program]


def _parsed(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options by name, and the program with its own arguments."""
    options: dict[str, str] = {}
    while arguments and arguments[0].startswith("--"):
        name, equals, value = arguments.pop(0).removeprefix("--").partition("=")
        if not equals and arguments:
            value = arguments.pop(0)
        if name not in ("worker_num", "hostfile", "timeout", *_UNUSED):
            raise MscError(Diagnostic("MSC1108", f"msrun has no option '--{name}'", help=_ADVICE))
        options[name] = value
    return options, arguments


def main() -> None:
    """Run, and end as the program ended."""
    try:
        words = command(sys.argv[1:])
    except MscError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    sys.stdout.flush()
    sys.exit(subprocess.call(words, env=os.environ))


if __name__ == "__main__":
    main()
