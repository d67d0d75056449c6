"""The `undivided` command."""
