"""The parts of the benchmark command `benches/crowd`."""
