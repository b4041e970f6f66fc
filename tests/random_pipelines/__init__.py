"""Random data pipelines whose functions and consumers write wherever they can, beside what their rows must be."""
