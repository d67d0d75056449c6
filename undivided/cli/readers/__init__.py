"""Readers of recorded conversations: one small module for each format."""
