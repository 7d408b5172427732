"""Text on a page: Markdown that a stranger cannot break out of, tokens made visible, numbers."""
