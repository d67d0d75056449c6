"""Undivided gives every LLM agent one undivided attention."""
