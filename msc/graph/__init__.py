"""Level 4: passes over the graph of ms operations, and the expanders of composite operations."""
