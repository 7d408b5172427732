"""Search over views, terms, exercises and courses: its entries, its route and its panel; the browser finds."""
