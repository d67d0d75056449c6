"""Replaying: an agent or a session as it was at any event, folded again step by step."""
