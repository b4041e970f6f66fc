"""Graph passes: composite operations to basic ones, work on weights to compile time, and what becomes one kernel."""
