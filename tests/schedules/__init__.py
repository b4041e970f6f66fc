"""The schedules that the compiler picks for layers of networks, on several targets, as files that are compared."""
