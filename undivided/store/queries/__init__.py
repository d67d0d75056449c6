"""Queries: what the rows say now, or what they said at a coordinate.

Each query answers with rows; where they come from (projected tables, or the log folded again) is
decided here, and whoever shows them cannot tell.
"""
