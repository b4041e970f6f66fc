"""What compilation leaves: C, libraries, bundles, functions to call."""
