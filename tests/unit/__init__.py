"""Specifications that need no server."""
