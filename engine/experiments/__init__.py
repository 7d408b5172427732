"""The commands that make everything stored under checkpoints/."""
