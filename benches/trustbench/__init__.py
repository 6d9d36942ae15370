"""The parts of benches/trust: each counts how often a judgement of linerate is right."""
