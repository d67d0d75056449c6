"""The plainest Dramatiq worker: its own Redis broker, a poll of 5 ms, an actor that commits.

    actor.py THREADS

`short_turn` writes two rows in two transactions, as many as a short turn of ours. `begun` tells
at what time it started, on a list in Redis.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from undivided.cli.bench import samples
from undivided.cli.bench.references.writer import Writer

POLL_MS = 5
QUEUE = "reference"
BEGUN = "reference:begun"


class Reference:
    """A broker and the two actors on it; for the process that sends, and for those that work."""

    def __init__(self, redis_url: str, database_url: str) -> None:
        self.broker = RedisBroker(url=redis_url, namespace="reference")  # type: ignore[no-untyped-call]
        self._database_url, self._own = database_url, threading.local()

        @dramatiq.actor(broker=self.broker, queue_name=QUEUE)
        def short_turn() -> None:
            writer = self._writer()
            writer.write()
            writer.write()

        @dramatiq.actor(broker=self.broker, queue_name=QUEUE)
        def begun() -> None:
            self.broker.client.rpush(BEGUN, time.time())

        self.short_turn, self.begun = short_turn, begun

    def _writer(self) -> Writer:
        """This thread's own writer."""
        if not hasattr(self._own, "writer"):
            stored = samples.stored(samples.response("trn_reference", 0))
            self._own.writer = Writer(self._database_url, stored)
        writer: Writer = self._own.writer
        return writer


def main(threads: int) -> None:
    """Work until told to stop."""
    reference = Reference(os.environ["REDIS_URL"], os.environ["DATABASE_URL"])
    worker = dramatiq.Worker(reference.broker, worker_threads=threads, worker_timeout=POLL_MS)
    worker.start()
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
