"""A second implementation of the forward pass, and the engine's own held against it."""
