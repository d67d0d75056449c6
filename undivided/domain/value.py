"""What most of the domain is made of: immutable values."""

from __future__ import annotations

from msgspec import Struct


class Value(Struct, frozen=True, gc=False):
    """Something that is what it says and never changes.

    A value is made of values only, so it is never part of a reference cycle, and the garbage
    collector does not look at it: folding a long history makes a dozen for each event, and
    looking at them again and again took longer than the fold.
    """
