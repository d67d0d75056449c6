"""The one door to language models: a profile name goes in, one response comes out.

Behind it are four kinds of model: the built-in offline one, scripts, rehearsals, and every
provider that pydantic-ai knows. This is the only module that imports pydantic-ai, and it does so
when a provider is first asked: a worker that needs none starts a second sooner and is 60 MB
smaller. One request is one response; the tool loop, retries across attempts and the history are
ours. Whatever goes wrong on the other side comes out as `ModelFailed` with its kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from undivided.domain.calls import named_calls
from undivided.domain.dialogue import (
    AssistantSaid,
    ModelReply,
    ModelRequest,
    ToolAnswered,
    Usage,
    UserSaid,
)
from undivided.domain.errors import FailureKind, Invalid, ModelFailed, NotFound
from undivided.store.model_sources import read_script
from undivided.store.settings import Config, ModelProfile, Price
from undivided.workers.model_files import ParsedFiles
from undivided.workers.model_offline import answer_offline
from undivided.workers.model_rehearsal import Rehearsals
from undivided.workers.model_script import answer_from

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

OnDelta = Callable[[str], None]

SILENCE_S = 300.0
"""How long a provider may say nothing before the request is given up."""

REQUEST_S = 1_800.0
"""How long one request may take in all, the provider's own retries included."""

OLLAMA_URL = "http://127.0.0.1:11434/v1"
"""Where Ollama is, unless a profile's settings or `OLLAMA_BASE_URL` say otherwise."""

_DETAIL = 500
_REQUEST_TIMEOUT = 408
_OURS = ("base_url", "requires_finish_reason")


class Models:
    """Every model that the config or an agent can name, for one process and event loop.

    `recordings` loads an uploaded recording by its sha256; it raises NotFound for an unknown one.
    """

    def __init__(self, config: Config, recordings: Callable[[str], Awaitable[bytes]]) -> None:
        self._profiles: Mapping[str, ModelProfile] = config.models
        self._scripts = ParsedFiles(read_script)
        self._rehearsals = Rehearsals(recordings)
        self._providers: dict[_Address, Model] = {}
        self._connecting = asyncio.Lock()

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """One response to `request`; `on_delta` gets its text piece by piece as it arrives.

        Raises:
            ModelFailed: there is no response, and `kind` says why.
        """
        profile = self._profile(request.profile)
        try:
            reply = await self._answer(profile, request, on_delta)
        except (Invalid, NotFound) as error:
            raise ModelFailed("refused", str(error)) from error
        return replace(reply, usage=priced(reply.usage, profile.price))

    def knows(self, profile: str) -> bool:
        """Whether a profile of this name is configured."""
        return profile in self._profiles

    async def aclose(self) -> None:
        """Close the connections to providers."""
        providers, self._providers = self._providers, {}
        for provider in providers.values():
            async with provider:
                pass  # its client closes when the last user leaves

    def _profile(self, name: str) -> ModelProfile:
        profile = self._profiles.get(name)
        if profile is not None:
            return profile
        if name == "offline" or ":" in name:
            return ModelProfile(model=name)
        raise ModelFailed(
            "refused",
            f"there is no model profile {name!r}; configured are "
            f"{', '.join(sorted(self._profiles))}, and openai:NAME and the like work without one",
        )

    async def _answer(
        self, profile: ModelProfile, request: ModelRequest, on_delta: OnDelta
    ) -> ModelReply:
        kind, _, source = profile.model.partition(":")
        match kind:
            case "offline":
                return await answer_offline(request, on_delta)
            case "script":
                return await answer_from(await self._scripts.get(source), request, on_delta)
            case "rehearsal":
                return await self._rehearsals.answer(source, request, on_delta)
            case _:
                provider = await self._provider(_Address.of(profile))
                return await _ask(provider, _for_library(profile), request, on_delta)

    async def _provider(self, address: _Address) -> Model:
        async with self._connecting:
            if address not in self._providers:
                # In a thread, for it imports a provider's whole library.
                self._providers[address] = await asyncio.to_thread(_connect, address)
            return self._providers[address]


class _Address(Struct, frozen=True):
    """Where and how a provider's model is reached: what one connection can be shared for."""

    model: str
    base_url: str | None
    requires_finish_reason: bool

    @classmethod
    def of(cls, profile: ModelProfile) -> _Address:
        """The address in a profile; both settings are ours and not the library's."""
        base_url = profile.settings.get("base_url")
        return cls(profile.model, base_url, profile.settings.get("requires_finish_reason", True))


def _for_library(profile: ModelProfile) -> dict[str, Any]:
    """A profile's settings without ours; the library would ignore a misspelt one silently."""
    from pydantic_ai.settings import ModelSettings

    known = sorted({*ModelSettings.__annotations__, *_OURS})
    families = (f"{profile.model.partition(':')[0].partition('-')[0]}_", "openai_")
    for key in profile.settings:
        if key not in known and not key.startswith(families):
            raise ModelFailed(
                "refused",
                f"model {profile.model} does not know the setting {key}; it knows "
                f"{', '.join(known)} and what begins with {' or '.join(dict.fromkeys(families))}",
            )
    return {key: value for key, value in profile.settings.items() if key not in _OURS}


def priced(usage: Usage, price: Price | None) -> Usage:
    """`usage` with what it costs, if the price is known; cached input tokens cost their own."""
    if price is None:
        return usage
    fresh = usage.input_tokens - usage.cache_tokens
    cost = fresh * price.input + usage.cache_tokens * price.cache
    return replace(usage, cost=(cost + usage.output_tokens * price.output) / 1_000_000)


def _connect(address: _Address) -> Model:
    """The library's model at an address.

    A chat stream that ends without a finish reason was cut off; unless a profile says that its
    server never sends one, that is an error and not a short reply.
    """
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

    def provider(name: str) -> Provider[Any]:
        connect: Callable[..., Provider[Any]] = infer_provider_class(name)
        if address.base_url is not None:
            return connect(base_url=address.base_url)
        try:
            return infer_provider(name)
        except UserError:
            if name != "ollama":
                raise
            return connect(base_url=OLLAMA_URL)

    try:
        model = infer_model(address.model, provider)
    except (UserError, ImportError, ValueError, TypeError) as error:
        text = f"model {address.model!r} cannot be used: {error}"
        raise ModelFailed("refused", text) from error
    profile: dict[str, Any] = model.profile  # type: ignore[assignment]
    profile["openai_chat_streaming_requires_finish_reason"] = address.requires_finish_reason
    return model


async def _ask(
    model: Model, settings: dict[str, Any], request: ModelRequest, on_delta: OnDelta
) -> ModelReply:
    """One streamed request to a provider."""
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(
            name=tool.name,
            parameters_json_schema=_sendable(tool.parameters),
            description=_sendable(tool.description),
        )
        for tool in request.tools
    ]
    limits: ModelSettings = {"timeout": SILENCE_S, "request_timeout": REQUEST_S}
    if request.temperature is not None:
        limits["temperature"] = request.temperature
    if request.max_tokens is not None:
        limits["max_tokens"] = request.max_tokens
    try:
        async with model_request_stream(
            model,
            _messages(request),
            model_settings=limits | settings,  # type: ignore[arg-type]
            model_request_parameters=ModelRequestParameters(function_tools=tools),
        ) as events:
            async for event in events:
                match event:
                    case PartStartEvent(part=TextPart(content=text)) if text:
                        on_delta(text)
                    case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                        on_delta(text)
        return _reply(events.get(), request)
    except ModelFailed:
        raise
    except Exception as error:
        raise _failure(error) from error


def _messages(request: ModelRequest) -> list[ModelMessage]:
    """The request's history as the library says it, ending with something to answer.

    A history normally holds the newest input. If it ends with a response, or is empty, there
    would be nothing to answer, and the newest input is put at its end.
    """
    from pydantic_ai import messages as library

    history = request.history
    if not history or isinstance(history[-1], AssistantSaid):
        history = (*history, UserSaid(request.newest_input))
    messages: list[ModelMessage] = []
    for said in history:
        if isinstance(said, AssistantSaid):
            if said.content or said.calls:
                messages.append(_response(said))
        elif messages and isinstance(messages[-1], library.ModelRequest):
            messages[-1].parts = [*messages[-1].parts, _request_part(said)]
        else:
            messages.append(library.ModelRequest(parts=[_request_part(said)]))
    last = messages[-1]
    if request.instructions and isinstance(last, library.ModelRequest):
        last.instructions = _sendable(request.instructions)
    return messages


def _response(said: AssistantSaid) -> ModelResponse:
    from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ToolCallPart

    parts: list[ModelResponsePart] = [TextPart(_sendable(said.content))] if said.content else []
    parts.extend(
        ToolCallPart(call.tool, _sendable(call.args), tool_call_id=call.id) for call in said.calls
    )
    return ModelResponse(parts=parts)


def _request_part(said: UserSaid | ToolAnswered) -> ModelRequestPart:
    from pydantic_ai.messages import ToolReturnPart, UserPromptPart

    if isinstance(said, UserSaid):
        return UserPromptPart(_sendable(said.content))
    return ToolReturnPart(said.tool, _sendable(said.content), tool_call_id=said.call_id)


def _sendable(value: Any) -> Any:
    """`value` without lone surrogates, which we keep but no provider's wire can carry."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_sendable(key): _sendable(inner) for key, inner in value.items()}
        case list():
            return [_sendable(inner) for inner in value]
        case _:
            return value


def _reply(response: ModelResponse, request: ModelRequest) -> ModelReply:
    """Our reading of a provider's response.

    Raises:
        ModelFailed: refused by a content filter, or cut off or unreadable in mid-call.
    """
    if response.finish_reason == "content_filter":
        raise ModelFailed("refused", "the provider's content filter stopped the response")
    if response.finish_reason == "error" or response.state != "complete":
        raise ModelFailed("server_error", f"the response ended {response.state}, by an error")
    calls = [(call.tool_name, call.args_as_dict()) for call in response.tool_calls]
    for tool, args in calls:
        if "INVALID_JSON" in args:
            cut = ", cut off at the token limit" if response.finish_reason == "length" else ""
            raise ModelFailed("malformed", f"the arguments of {tool} are not a JSON object{cut}")
    used = response.usage
    return ModelReply(
        text="".join(part.content for part in response.parts if part.part_kind == "text"),
        calls=named_calls(request, calls),
        usage=Usage(used.input_tokens, used.output_tokens, used.cache_read_tokens, requests=1),
        model=response.model_name or "",
    )


def _failure(error: Exception) -> ModelFailed:
    """What went wrong, as one of our kinds; errors that are not a model's pass as they are."""
    from pydantic_ai import exceptions as library

    kinds: tuple[tuple[FailureKind, tuple[type[Exception], ...]], ...] = (
        ("timeout", (library.ModelRequestTimeout, library.ModelTimeoutError, TimeoutError)),
        ("rate_limited", (library.ModelRateLimitError,)),
        ("refused", (library.ModelRequestRejectedError, library.ModelQuotaExceededError)),
        ("refused", (library.ContentFilterError, library.UserError)),
        ("server_error", (library.ModelAPIError, OSError)),
        ("malformed", (library.UnexpectedModelBehavior, ValueError)),
    )
    kind = next((kind for kind, families in kinds if isinstance(error, families)), None)
    if kind is None:
        raise error
    if isinstance(error, library.ModelAuthenticationError):
        return ModelFailed(kind, "the provider does not accept our credentials for this model")
    if isinstance(error, library.ModelHTTPError) and error.status_code == _REQUEST_TIMEOUT:
        kind = "timeout"
    return ModelFailed(kind, str(error)[:_DETAIL])
