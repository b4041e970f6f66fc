"""Runs of training that are killed at random moments and go on: ``python -m tests.killed_runs --help``."""
