"""Layouts of operands in memory."""
