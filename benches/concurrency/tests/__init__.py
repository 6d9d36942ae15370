"""Tests of the parts of `benches/crowd` that need no process."""
