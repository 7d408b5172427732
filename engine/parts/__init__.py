"""The parts a block is made of. Each file holds one kind of part; `registry` has them by name."""
