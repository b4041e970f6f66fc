"""Models of every form that a caller may give, and their inputs and outputs."""
