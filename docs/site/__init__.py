"""The documentation site: what `make docs` builds of docs/, the views and the engine's docstrings."""
