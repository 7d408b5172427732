"""Training as a generator of records, and what it is made of."""
