"""lit configuration: `%{msc-opt}` is the pass driver of the checkout under test."""

# pyright: reportUndefinedVariable=false
import os
import sys
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
config.substitutions += [
    ("%{msc-opt}", f"{sys.executable} -m msc.driver.verbs.opt"),
    ("%{msc}", f"{sys.executable} -m msc.driver"),
    ("%{python}", sys.executable),
    ("%{samples}", os.path.join(root, "samples")),
]
config.maxIndividualTestTime = 300  # for one that hangs, on a busy machine too
