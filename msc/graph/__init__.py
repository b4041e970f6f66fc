"""Passes over the graph of ms operations, the expanders of composite operations, and differentiation."""
