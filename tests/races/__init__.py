"""Races, staged on a real database: named connections, held locks, and nothing is slept for."""
