"""Where effects happen: models are asked, tools run, agents are attended to."""
