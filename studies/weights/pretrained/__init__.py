"""Models that others have trained, read strictly into this engine's configuration and weights."""
