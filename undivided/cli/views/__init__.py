"""How answers of the API look in a terminal: pure functions from JSON to Rich renderables."""
