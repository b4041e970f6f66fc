"""Work on weights that moves to compile time."""
