"""Published models, read strictly, and our own, written for other programs."""
