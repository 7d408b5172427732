"""Commands that make everything stored under checkpoints/."""
