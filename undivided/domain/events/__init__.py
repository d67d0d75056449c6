"""The events: what can be true of an agent's past, in domain words.

Read these first. Each is frozen, past tense and self-sufficient: it says what was decided and
the inputs that decided it. `catalogue.py` gives each its stored name and schema number.
"""
