"""Specifications of the store, against a real Postgres."""
