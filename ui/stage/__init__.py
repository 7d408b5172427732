"""The stage: a page on a projector, a code that leads the room to it, and what the room answers."""
