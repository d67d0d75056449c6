"""The HTTP surface against a real database."""
