"""The act that changes how often an agent's heart beats."""

from __future__ import annotations

import json

from undivided.domain.agents import ConfigureAgent, configure
from undivided.domain.interval import SetHeartbeatInterval
from undivided.domain.pace import clamped
from undivided.store.acts.doing import Doing, Done
from undivided.store.flights import Flight
from undivided.store.log import AgentTx


async def _set(tx: AgentTx, _flight: Flight, act: SetHeartbeatInterval) -> Done:
    """The interval applies at once; the model reads what it came to."""
    interval = clamped(act.interval_s)
    events = configure(tx.agent, ConfigureAgent(heartbeat_interval_s=interval))
    told = {
        "status": "ok",
        "interval_ms": round(interval * 1000),
        "interval_minutes": round(interval / 60, 3),
        "clamped": interval != round(act.interval_s, 3),
    }
    return Done(content=json.dumps(told), events=events)


SETTING_INTERVAL = Doing(_set)
