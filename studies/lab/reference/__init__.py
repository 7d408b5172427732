"""A second implementation of the forward pass, and the comparison with the engine's."""
