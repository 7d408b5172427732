"""For who runs a server: whether it is ready, how it is, and what happens on it. At home none of it is on."""
