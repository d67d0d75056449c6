"""`undivided check` and `undivided rebuild`: is everything as the log says, and making it so."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from msgspec import Struct, to_builtins
from rich.console import Group, RenderableType
from rich.text import Text

from undivided.cli.answers import show
from undivided.cli.client import NO
from undivided.cli.database import Data, Meter, carry_out, find_settings, metered
from undivided.cli.options import AsJson
from undivided.cli.surroundings import DEFAULT_DATA
from undivided.cli.views.cells import one_line, plain, table
from undivided.store.checking import Checked, check
from undivided.store.rebuild import rebuild
from undivided.store.repairing import Repair, repair
from undivided.store.settings import Settings
from undivided.store.tables import PROJECTED

INVARIANTS = {
    0: "order of the log",
    1: "single flight",
    2: "nothing lost",
    3: "completed with its turn",
    5: "one result a call",
    10: "rows as the log says",
}


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(name="check")(check_command)
    app.command(name="rebuild")(rebuild_command)


class Answer(Struct, frozen=True):
    """What was found, what was done about it, and what is still wrong afterwards."""

    before: Checked
    repairs: list[Repair]
    after: Checked


def check_command(
    mend: Annotated[
        bool, typer.Option("--repair", help="Mend what can be mended, then check again.")
    ] = False,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Prove the invariants over the whole history, and compare every row with it.

    Nobody has to stop for it. Exit code 1 if anything is wrong (with --repair: is still wrong).
    """
    settings = find_settings(data)
    with metered("events", quiet=as_json) as meter:
        answer = carry_out(_checked(settings, mend, meter))
    show(_told(answer), as_json, _view)
    if answer.after.found:
        raise typer.Exit(NO)


async def _checked(settings: Settings, mend: bool, meter: Meter) -> Answer:
    url = settings.database_direct_url
    before = await check(url, meter)
    if not mend or not before.found:
        return Answer(before, [], before)
    repairs = await repair(url, before)
    return Answer(before, repairs, await check(url, meter))


def _told(answer: Answer) -> dict[str, Any]:
    done = {id(one.wrong): one for one in answer.repairs}
    findings = []
    for wrong in answer.before.wrong:
        found: dict[str, Any] = {"tenant": wrong.tenant, **to_builtins(wrong.finding)}
        mended = done.get(id(wrong))
        if mended is not None:
            found |= {"repaired": mended.done, "repair": mended.how}
        findings.append(found)
    return {
        "ok": answer.after.found == 0,
        "position": str(answer.after.horizon),
        "events": answer.after.events,
        "rows": answer.after.rows,
        "found": answer.before.found,
        "left": answer.after.found,
        "findings": findings,
    }


def _view(told: dict[str, Any]) -> RenderableType:
    looked = f"{told['events']} events and {told['rows']} rows up to {told['position']}"
    if not told["findings"]:
        return Text(f"everything is right: {looked}", style="green")
    rows = table("invariant", "rule", "subject", "where", "what", giving=("subject", "what"))
    for found in told["findings"]:
        what = found["text"] if "repair" not in found else f"{found['text']} → {found['repair']}"
        rows.add_row(
            f"{found['invariant']} {INVARIANTS.get(found['invariant'], '')}",
            found["rule"], one_line(found["subject"]), found["where"], plain(what),
        )  # fmt: skip
    more = told["found"] - len(told["findings"])
    ends = [f"{told['found']} findings in {looked}"]
    ends += [f"{more} more are not listed"] if more else []
    ends += [f"{told['left']} left after repair"] if told["left"] != told["found"] else []
    return Group(rows, Text("; ".join(ends), style="red" if told["left"] else "green"))


def rebuild_command(
    projection: Annotated[
        str | None,
        typer.Argument(
            metavar="PROJECTION",
            help=f"One of {', '.join(t.name for t in PROJECTED)}; all of them without it.",
            show_default=False,
        ),
    ] = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Fold rows anew from the log, beside those that are there, and change them over.

    Nobody has to stop for it. Needs the role that owns the tables (DATABASE_OWNER_URL).
    """
    settings = find_settings(data)
    with metered("events", quiet=as_json) as meter:
        rebuilt = carry_out(rebuild(settings.database_owner_url, projection, meter))
    told = {
        "tables": list(rebuilt.tables),
        "events": rebuilt.events,
        "position": str(rebuilt.horizon),
    }
    show(told, as_json, _rebuilt_view)


def _rebuilt_view(told: dict[str, Any]) -> RenderableType:
    names = ", ".join(told["tables"])
    return Text(f"rebuilt {names} from {told['events']} events up to {told['position']}")
