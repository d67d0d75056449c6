"""Projections: how history folds into rows. Pure, total reducers; no I/O at all.

Each projection names its row type, the keys an event touches and a reducer for one row. Rows
of one key are only ever folded from events of one stream, so the order of that stream is the
order of the fold, in the append transaction as in a rebuild.
"""
