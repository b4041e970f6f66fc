"""Compiled results against the interpreter and other runtimes."""
