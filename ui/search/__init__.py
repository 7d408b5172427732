"""Search over views, terms, exercises and courses: what can be found, its route and its panel."""
