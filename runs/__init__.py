"""Many trainings at once, each in a process of its own: the run manager and all below it."""

import studies  # noqa: F401  # which names what it adds to the engine
