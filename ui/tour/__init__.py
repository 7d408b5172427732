"""A guided course through the app: scenes as YAML, and the bar that leads through them."""
