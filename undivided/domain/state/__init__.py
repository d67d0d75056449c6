"""State: what decisions read. Each type is one projected row, folded by `projections/`.

A row holds its phase as a union with the data that this phase has; what is derived from the
phase is never stored beside it.
"""
