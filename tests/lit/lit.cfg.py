"""lit configuration: `%{msc-opt}` is the pass driver of the checkout under test, by prestarted.py."""

# pyright: reportUndefinedVariable=false
import os
import subprocess
import sys
import tempfile
from typing import Any

import lit.formats

config: Any = globals()["config"]

config.name = "msc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mir"]
config.test_source_root = os.path.dirname(__file__)
root = os.path.dirname(os.path.dirname(config.test_source_root))
config.test_exec_root = os.path.join(root, "build", "lit")
config.environment["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), config.environment["PATH"]))
config.environment["PYTHONPATH"] = root
config.environment["MSC_STRICT"] = "1"
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")
prestarted = os.path.join(config.test_source_root, "prestarted.py")
place = os.path.join(tempfile.mkdtemp(), "msc")
read, held = os.pipe()  # until lit and its workers end
subprocess.Popen([sys.executable, prestarted, "--serve", place], stdin=read, env=dict(config.environment))
os.close(read)
config.substitutions += [
    ("%{msc-opt}", f"{sys.executable} -IS {prestarted} {place} msc-opt"),
    ("%{msc}", f"{sys.executable} -IS {prestarted} {place} msc"),
    ("%{python}", sys.executable),
    ("%{samples}", os.path.join(root, "samples")),
]
config.maxIndividualTestTime = 300  # for one that hangs, on a busy machine too
