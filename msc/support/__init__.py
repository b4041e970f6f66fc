"""Level 0: diagnostics with codes and carets, file writing, hashes. Knows no IR and imports nothing heavy."""
