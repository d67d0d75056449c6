"""Why: an item's whole story, in sentences that a person understands. Events in, sentences out."""
