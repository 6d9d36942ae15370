"""Compatibility with other tools, case by case."""
