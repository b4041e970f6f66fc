"""The auto-scheduler: isl proves schedules legal, this package makes the decisions."""
