"""A session that was archived while a message waited for it is not opened again."""

from __future__ import annotations

from tests.support.lives import BY, accept, begin, create, log_at
from tests.support.servers import Database
from undivided.domain.events.sessions import SessionArchived, SessionOpened
from undivided.store.checking import check
from undivided.store.log import Addition


async def test_the_message_gets_a_conversation_of_its_own(database: Database) -> None:
    """What is archived stays as it was; what waited is answered all the same."""
    async with log_at(database.app_url) as log:
        await create(log, "ada")
        await log.append(
            [
                Addition(
                    "session:ses_ada",
                    0,
                    (
                        SessionOpened(session_id="ses_ada", agent_id="ada"),
                        SessionArchived(session_id="ses_ada"),
                    ),
                )
            ],
            BY,
        )
        await accept(log, "ada", "are you there?")
        flight = await begin(log, "ada")
        assert flight is not None
        assert flight.session.id != "ses_ada"
        assert flight.session.status == "active"
    assert (await check(database.app_url)).wrong == []
