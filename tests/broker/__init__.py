"""The doorbell, its broker and the hints, against a real Valkey."""
