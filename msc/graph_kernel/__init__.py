"""Level 5: what becomes one kernel, and how its operands lie in memory."""
