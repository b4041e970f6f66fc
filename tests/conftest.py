"""What holds for all tests: a schedule that is not legal fails, instead of running slowly."""

import os

from msc.schedule.schedule_kernels import STRICT

os.environ[STRICT] = "1"
