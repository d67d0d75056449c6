"""The flight row: who holds an agent, and the epoch that fences everybody else."""

from __future__ import annotations

from msgspec.structs import replace

from undivided.domain.events import flights as f
from undivided.domain.recorded import Recorded
from undivided.domain.state.agent import FlightRow

TOUCHED = f.FlightAcquired | f.FlightReleased


def keys(recorded: Recorded) -> tuple[str, ...]:
    """The agent that is taken or let go."""
    event = recorded.event
    return (event.agent_id,) if isinstance(event, TOUCHED) else ()


def reduce(row: FlightRow | None, recorded: Recorded) -> FlightRow | None:
    """The flight row after `recorded`."""
    match recorded.event:
        case f.FlightAcquired(agent_id=agent_id, epoch=epoch, worker=worker):
            return FlightRow(id=agent_id, epoch=epoch, worker=worker, held=True, since=recorded.at)
        case f.FlightReleased() if row is not None:
            return replace(row, held=False, since=recorded.at)
        case _:
            return row
