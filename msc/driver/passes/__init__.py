"""The passes and stages there are, as data, and what runs them."""
