"""Talking to an agent in a terminal."""
