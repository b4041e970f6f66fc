"""The order in which long sums are added up."""
