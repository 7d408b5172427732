"""What runs in the browser: each component is a script and a style of ui/assets, mounted here."""
