"""Programs whose surroundings change between two calls: graph mode and PyNative mode must see the same."""
