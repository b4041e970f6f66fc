"""The commands `msc` and `msc-opt` of the lit tests: forks of one process that has imported what they import.

`python prestarted.py --serve SOCKET` is this process; it ends when its standard input does. `python prestarted.py
SOCKET msc ARGUMENTS...` hands it the arguments, the folder, the environment and the open files, and ends as the fork
ends. Imports take half a second, and most tests less.
"""

from __future__ import annotations

import os
import sys

PROGRAMS = {"msc": "msc.driver", "msc-opt": "msc.driver.verbs.opt"}
"""The programs, and the modules that are theirs."""
_IMPORTED = (
    "analysis backends codegen cost driver graph graph_kernel importers interp lowering runtime schedule targets"
)


def ask(place: str, arguments: list[str]) -> int:
    """The exit code of a fork that runs a program with arguments."""
    import json
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        server.connect(place)
        said = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
        socket.send_fds(server, [len(said).to_bytes(4, "little")], [0, 1, 2])
        server.sendall(said)
        return server.recv(1)[0]


def serve(place: str) -> list[str]:
    """Give the arguments of a program to the fork that is to run it; the server itself leaves here."""
    import gc
    import importlib
    import json
    import pkgutil
    import select
    import signal
    import socket

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen(64)
        for package in _IMPORTED.split():
            folder = importlib.import_module(f"msc.{package}").__path__
            for module in pkgutil.walk_packages(folder, f"msc.{package}."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)
        gc.collect()
        gc.freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if listening not in ready:
                os.unlink(place)
                os.rmdir(os.path.dirname(place))
                sys.exit(0)
            client, _ = listening.accept()
            if os.fork():
                client.close()
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            length, files, _, _ = socket.recv_fds(client, 4, 3)
            with client.makefile("rb") as reader:
                arguments, folder, environment = json.loads(reader.read(int.from_bytes(length, "little")))
            child = os.fork()
            if child:
                client.sendall(bytes([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF]))
                os._exit(0)
            client.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            return arguments


def main() -> None:
    """Serve, or ask the server; without one, be the program."""
    if sys.argv[1] != "--serve":
        place, *arguments = sys.argv[1:]
        try:
            code = ask(place, arguments)
        except OSError:
            os.execv(sys.executable, [sys.executable, "-m", PROGRAMS[arguments[0]], *arguments[1:]])
        sys.exit(code)
    sys.argv = serve(sys.argv[2])
    from msc.driver import start

    start.main() if sys.argv[0] == "msc" else start.main_opt()


if __name__ == "__main__":
    main()
