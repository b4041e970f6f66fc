"""The command line, the stage table, and everything that puts the packages together."""
