"""The embedding as a table of vectors."""
