"""The map on the Home page."""
