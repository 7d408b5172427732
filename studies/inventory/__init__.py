"""A test of common misconceptions in two parallel forms, with measured answers, and what a class gained."""
