"""Commands from outside: lock, decide, append, then tell those who may be waiting."""
