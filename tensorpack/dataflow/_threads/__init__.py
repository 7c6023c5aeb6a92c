"""The parts of flows with threads: threads and their buffer, a pass of a map, and mixtures."""
