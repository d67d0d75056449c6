"""The HTTP surface: commands and queries, nothing decided here."""
