"""Fresh ids: made here so that `domain/` needs neither clock nor randomness."""

from __future__ import annotations

import os
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)


def fresh_event_id() -> str:
    """A UUID version 7 (RFC 9562): 48 bits of milliseconds, then random bits."""
    stamp = time.time_ns() // 1_000_000
    bits = int.from_bytes(os.urandom(10))
    value = (stamp & 0xFFFF_FFFF_FFFF) << 80
    value |= 0x7 << 76 | ((bits >> 62) & 0xFFF) << 64 | 0b10 << 62 | bits & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def fresh_id(prefix: str) -> str:
    """A readable id that sorts by time: `prefix`, `_`, 10 characters of time, 10 of chance."""
    value = (time.time_ns() // 1_000_000) << 50 | int.from_bytes(os.urandom(7)) & (1 << 50) - 1
    digits = "".join([_PAIRS[(value >> shift) & 1023] for shift in range(90, -1, -10)])
    return f"{prefix}_{digits}"
