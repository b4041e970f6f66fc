"""What becomes one kernel, and how its operands lie in memory."""
