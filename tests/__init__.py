"""Specifications of Undivided, run against a real Postgres and a real Valkey."""
