"""What Undivided knows about attention: events, commands, state, rules. Pure, without I/O."""
