"""The answers, one struct each: what OpenAPI documents is what is encoded."""
