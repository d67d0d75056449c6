"""Bringing histories in: our own exports, and conversations that others recorded."""
