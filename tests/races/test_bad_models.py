"""Models that fail in every way there is: no item is left in a turn, and people are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.races.hand import Hand, hired
from tests.races.staging import Stage
from tests.races.test_interrupts import send
from tests.support.lives import BY
from tests.unit.loopback_provider import Provider, Says, running
from undivided.domain import agents
from undivided.domain.agents import CreateAgent
from undivided.domain.events.items import AgentIncomplete, ItemDeadLettered, NoticePosted
from undivided.domain.policy import DEFAULT_POLICY
from undivided.domain.recorded import agent_stream
from undivided.store.config import default_config
from undivided.store.log import Addition, Log
from undivided.store.settings import Config, ModelProfile, Settings
from undivided.workers.model import Models

KINDS = ["timeout", "rate_limited", "server_error", "refused", "malformed"]
