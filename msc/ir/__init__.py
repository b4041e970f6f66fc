"""Level 1: what xDSL lacks apart from dialects: locations, dominance, safe parsing, verification, capped rewriting."""
