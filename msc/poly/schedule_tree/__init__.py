"""The schedule of a kernel as a tree: data that prints as text and maps onto isl's schedule trees."""
