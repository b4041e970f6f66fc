"""All tests, those of `pytest` and the long ones of `python -m tests.NAME`.

In all of them a strategy that chooses an illegal schedule is an internal error, instead of slow code.
"""

import os

os.environ["MSC_STRICT"] = "1"  # before msc is imported, which takes seconds that `--help` of a long test need not
