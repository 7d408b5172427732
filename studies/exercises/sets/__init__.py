"""The exercises themselves, a module for each set."""
