"""Whole suites of tests with optimisations turned off, each in turn: `python -m tests.switched`."""
