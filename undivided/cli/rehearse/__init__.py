"""Rehearsal: a recorded conversation runs again through the running service."""
