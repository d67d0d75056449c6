"""Processes that agents start and do not wait for."""
