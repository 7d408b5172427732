"""Position schemes: what they do to scores, and how far they extrapolate."""
