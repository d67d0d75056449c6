"""The config file: which models, which defaults, how workers behave.

A file with a mistake is refused as a whole, in one sentence that names the file, the line and
what is allowed there; nothing is ever ignored silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from undivided.domain.errors import Invalid
from undivided.domain.policy import DEFAULT_POLICY, Policy, adopt
from undivided.store.config_mistakes import SettingsMistake, Source, because, explained, unknown_key
from undivided.store.model_sources import look_into

Amount = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]

OFFLINE = "offline"


class Price(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a model costs, per million tokens; cached input costs what `cache` says."""

    input: Amount
    output: Amount
    cache: Amount


class ModelProfile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One named model: which one, how it is asked, and what it costs if that is known."""

    model: str
    settings: dict[str, Any] = {}
    price: Price | None = None


class WorkersConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`lease_s`: how long a silent flight is believed; `sweep_s`: how often repairs run.

    `background_exec`: whether agents may run shell commands on the workers' hosts;
    `background_dir`: where these commands live, empty for a folder among the temporary files.
    """

    lease_s: Seconds = 30
    sweep_s: Seconds = 1
    background_exec: bool = True
    background_dir: str = ""


class Orchestration(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Bounds of the delegation tree; `definitions_dir` is relative to the config file."""

    definitions_dir: str = "agents"
    root_delegates: list[str] = []
    max_tree_depth: Count = 4
    max_runs_per_tree: Count = 16
    max_concurrent_runs: Count = 6
    max_concurrent_runs_per_session: Count = 4
    max_concurrent_provider_steps: Count = 8
    max_concurrent_provider_steps_per_session: Count = 4
    max_concurrent_tool_steps: Count = 16
    max_concurrent_tool_steps_per_session: Count = 8
    max_pending_inbox_events_per_session: Count = 128
    inbox_event_ttl_hours: Seconds = 168
    max_inbox_delivery_attempts: Count = 8
    max_user_turn_burst_before_inbox: Count = 4
    max_inbox_wait_secs: Seconds = 30


class _File(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    models: dict[str, ModelProfile] = {}
    policy: dict[str, Any] = {}
    workers: WorkersConfig = WorkersConfig()
    orchestration: Orchestration = Orchestration()
    auth: dict[str, Any] = {}
    retention: dict[str, Any] = {}


class Config(Struct, frozen=True, kw_only=True):
    """Everything the config file decides, with its defaults filled in.

    `policy` holds the defaults that were given, under their public camelCase names;
    `models` always has a profile called `default`.
    """

    models: dict[str, ModelProfile]
    policy: dict[str, Any] = {}
    workers: WorkersConfig = WorkersConfig()
    orchestration: dict[str, Any] = {}
    auth: dict[str, Any] = {}
    retention: dict[str, Any] = {}


def default_config() -> Config:
    """Give the config of somebody who wrote none: one built-in model that needs no network."""
    return _config(_File())


def load_config(path: Path) -> Config:
    """Read the TOML file at `path`.

    Raises:
        SettingsMistake: it is not there, not TOML, or says something that is not allowed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsMistake(f"{path}: the config file cannot be read: {because(error)}") from None
    return _config(_checked(Source(path, text)))


# Which keys each table of the file may have; `*` stands for a profile's own name.
_SHAPES: Mapping[tuple[str, ...], type[Struct]] = MappingProxyType(
    {
        (): _File,
        ("workers",): WorkersConfig,
        ("orchestration",): Orchestration,
        ("models", "*"): ModelProfile,
        ("models", "*", "price"): Price,
    }
)


def _checked(source: Source) -> _File:
    raw = source.parse()
    _fill_cache_prices(raw)
    try:
        file = msgspec.convert(raw, _File)
    except msgspec.ValidationError as error:
        where, what = explained(str(error), raw, _SHAPES)
        raise source.mistake(where, what) from None
    models = {name: _placed(source, name, profile) for name, profile in file.models.items()}
    return msgspec.structs.replace(file, models=models, policy=_policy(source, file.policy))


def _config(file: _File) -> Config:
    return Config(
        models={"default": ModelProfile(model=OFFLINE), **file.models},
        policy=file.policy,
        workers=file.workers,
        orchestration=msgspec.to_builtins(file.orchestration),
        auth=file.auth,
        retention=file.retention,
    )


def _fill_cache_prices(raw: dict[str, Any]) -> None:
    models = raw.get("models")
    for profile in models.values() if isinstance(models, dict) else ():
        price = profile.get("price") if isinstance(profile, dict) else None
        if isinstance(price, dict) and "input" in price:
            price.setdefault("cache", price["input"])


def _placed(source: Source, name: str, profile: ModelProfile) -> ModelProfile:
    """Refuse a model string without a provider, and find the file that it names."""
    where = ("models", name, "model")
    kind, _, rest = profile.model.partition(":")
    if profile.model == OFFLINE:
        return profile
    if not kind or not rest:
        raise source.mistake(
            where,
            f'model "{profile.model}" is not one that can be asked; allowed are "offline", '
            '"openai:NAME", "anthropic:NAME", "ollama:NAME", "script:FILE", "rehearsal:FILE"',
        )
    if kind not in {"script", "rehearsal"} or rest.startswith("recording:"):
        return profile
    found = [path for path in (source.path.parent / rest, Path(rest)) if path.is_file()]
    if not found:
        raise source.mistake(where, f"{kind} file {rest} is not there; give a path to a file")
    model = f"{kind}:{found[0].resolve()}"
    try:
        look_into(model)
    except Invalid as error:
        raise SettingsMistake(str(error)) from None
    return msgspec.structs.replace(profile, model=model)


def _policy(source: Source, given: dict[str, Any]) -> dict[str, Any]:
    """Bring policy defaults to their public names, and try each of them on."""
    names = dict(zip(Policy.__struct_fields__, Policy.__struct_encode_fields__, strict=True))
    wanted: dict[str, Any] = {}
    for key, value in given.items():
        public = names.get(key, key)
        if public not in names.values():
            raise source.mistake(("policy", key), unknown_key(key, "policy", names))
        try:
            adopt(DEFAULT_POLICY, {public: value})
        except Invalid as error:
            raise source.mistake(("policy", key), f"policy.{key}: {error}") from None
        wanted[public] = value
    return wanted
