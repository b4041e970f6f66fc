"""The importers of operators, by family. Each is a function of a `Node` that gives the values of its outputs."""
