"""Tests of the comparison with originals."""
