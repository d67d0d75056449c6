"""Items as a summary needs them: what is long is cut, and what is not shown is left out."""

from __future__ import annotations

SHORT_ITEM = """i.id, i.agent_id, i.source_type, i.category, i.priority, i.seq, i.delivery,
           i.session_id, i.payload - 'extra'
             || jsonb_build_object('content', left(i.payload->>'content', 600)) AS payload,
           '{}'::json AS sender, i.tries, i.phase, i.queued_at, '' AS accepted_by,
           '' AS correlation, i.merged"""
"""The columns of an item `i`, enough of its content for any summary."""
