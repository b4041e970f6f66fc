"""The loops that statements share: which, in which order, and which of them carry vectors."""
