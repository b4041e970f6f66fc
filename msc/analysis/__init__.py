"""Read-only questions about the IR."""
