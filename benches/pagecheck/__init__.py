"""Looks at the pages of linerate in a browser."""
