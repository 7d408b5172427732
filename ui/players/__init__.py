"""Components that run in the browser: each is a script and a style of ui/assets, mounted here."""
