"""Writing beyond the engine's loop: beams, branches, single rows, and how likely a text was."""
