"""Many trainings at once, each in a process of its own: the run manager and all below it."""
