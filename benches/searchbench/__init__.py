"""Checks of what linerate writes to a real search server, and of what is answered from there."""
