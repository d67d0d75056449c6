"""Deciding acts: what each of an agent's own tools reads and changes."""
