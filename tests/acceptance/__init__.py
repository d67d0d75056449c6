"""The real service, as its users meet it."""
