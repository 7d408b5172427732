"""Components that run in the browser: each is a script and a style, mounted here."""
