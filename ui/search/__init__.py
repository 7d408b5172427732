"""Search over views, terms, exercises and courses: an index, its entries, its route and its panel."""
