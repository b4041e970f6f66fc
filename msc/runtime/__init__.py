"""Level 3: finds the C compiler, builds, loads, calls and times compiled models. Never sees IR."""
