"""The commands about conversations: `sessions list`, `show`, `search`, `interrupt`, `rename`, `fork`, `export`, `delete`,
`repair` and `rules`."""

from __future__ import annotations

import click

from harness.base import console, errors
from harness.base.errors import UsageFault
from harness.builtin.sessions import folder, log, recall, repair, rule_changes, state, turn_replay
from harness.builtin.sessions.keys import USER
from harness.builtin.sessions.state import AgentState
from harness.builtin.sessions.upkeep import Sessions
from harness.cli import _turn_view, _values, help
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.workplace import run_detection

MAX_LISTED = 50
MAX_FAULTS = 12
MAX_WORDS_CHARS = 4000  # of the words of an interrupt
LISTED = ("user", "session", "agent", "calls", "used")
of_user = click.option("--user", default="", metavar="U", help="The user; by default as for `ask`.")


@click.group(cls=help.CommandGroups)
def sessions() -> None:
    """Conversations with the built-in agent: list, show, search, interrupt, rename, fork, export, delete, repair, rules."""


def _line(text: str) -> str:
    """An id on one line."""
    return " ".join(text.split())


@sessions.command(name="list")
@click.option("--user", default="", metavar="U", help="Only those of this user.")
@as_json
def sessions_list(user: str, as_json: bool) -> int:
    """List the sessions, newest first."""
    store = folder.store(here())
    found, faults = state.of_user(store, user), state.unread(store, user)
    value = [{**{name: getattr(one, name) for name in LISTED}, **one.newest} for one in found]
    lines = [*map(_summary, found)] or ["There are no sessions here."] * (not faults)
    _values.show(value, lines, as_json=as_json)
    for line in [*faults[:MAX_FAULTS], *([f"… and {len(faults) - MAX_FAULTS} more"] if faults[MAX_FAULTS:] else [])]:
        console.print_error(line)
    return errors.BROKEN if faults else errors.DONE


def _summary(one: AgentState) -> str:
    cost = f", {one.used['cost_usd']:.4f} USD" if one.used.get("cost_usd") else ""
    who = f"{_line(one.session)} ({_line(one.user)}, {one.agent})"
    return f"{one.newest['ended']}  {who}: {one.calls} calls{cost}; {one.newest['outcome']}: {one.newest['words']}"


@sessions.command(name="show")
@click.argument("session", metavar="S")
@of_user
@click.option("--turn", type=click.IntRange(min=1), metavar="N", help="The Nth request: its parts, and rebuilt.")
@click.option("--messages", is_flag=True, help="All messages.")
@as_json
def sessions_show(session: str, user: str, turn: int | None, messages: bool, as_json: bool) -> int:
    """Show a session, and the result of each of its calls."""
    store, keys = folder.named(here(), session, user)
    if turn is not None:
        known, made = turn_replay.turn(store, keys, turn)
        return _turn_view.shown(known, made, as_json=as_json)
    found, _ = state.load(store, keys)
    if found is None:
        raise UsageFault(f"There is no session {session} of {keys.user}.")
    results = log.whole(store, keys).calls
    said = recall.messages(store, keys) if messages else []
    value = {name: value for name, value in found.asdict().items() if name != "format"}
    value |= {"calls": [one.asdict() for one in results.values()], "messages": [one.text for one in said]}
    lines = [f"{keys.session} of {keys.user}, with {found.agent}, since {found.created}: {store.describe(keys.top)}"]
    for one in results.values():
        counts = ", ".join(f"{one.usage[name]} {name}" for name in ("input", "output", "cost_usd") if name in one.usage)
        turns = f"turns {one.turns[0]}-{one.turns[1]}" if one.turns else "no turn"
        lines.append(f"{one.call}  {one.begun}  {one.outcome}  {turns}  {one.seconds} s  {counts}")
        lines.append(f"   {' '.join(one.message.split())[:100]}{f'  ({one.reason})' if one.reason else ''}")
    lines += [f"\n{one_said.number}. {one_said.text}" for one_said in said]
    _values.show(value, lines, as_json=as_json)
    return 0


@sessions.command(name="search")
@click.argument("words", nargs=-1, required=True, metavar="WORDS...")
@of_user
@as_json
def sessions_search(words: tuple[str, ...], user: str, as_json: bool) -> None:
    """Search the messages of all sessions of a user; best matches first."""
    store, keys = folder.named(here(), USER, user)
    found = recall.search(store, keys.user, " ".join(words), MAX_LISTED)
    lines = [f"{one.session}: {' '.join(one.text.split())[:200]}" for one in found]
    _values.show(found, lines or ["No matches."], as_json=as_json)


@sessions.command(name="interrupt")
@click.argument("session", metavar="S")
@click.argument("words", nargs=-1, metavar="[WORDS...]")
@of_user
@as_json
def sessions_interrupt(session: str, words: tuple[str, ...], user: str, as_json: bool) -> None:
    """End the running and waiting calls of a session; WORDS are for the agent."""
    run_detection.refuse(here(), "sessions interrupt")
    store, keys = folder.named(here(), session, user)
    count = Sessions(store, "").interrupt(keys.session, keys.user, " ".join(words)[:MAX_WORDS_CHARS])
    line = f"{count} interrupted." if count else "No call is running or waiting there."
    _values.show({"interrupted": count}, [line], as_json=as_json)


@sessions.command(name="rename")
@click.argument("session", metavar="S")
@click.argument("new", metavar="NEW")
@of_user
def sessions_rename(session: str, new: str, user: str) -> None:
    """Give a session the id NEW."""
    known, who = _changeable("rename", user)
    known.rename(new, session, who)
    console.print_line(f"{session} is {new} now.")


@sessions.command(name="fork")
@click.argument("session", metavar="S")
@click.argument("new", metavar="NEW")
@of_user
def sessions_fork(session: str, new: str, user: str) -> None:
    """Copy a session with all its messages to the id NEW; both can continue."""
    known, who = _changeable("fork", user)
    known.fork(new, session, who)
    console.print_line(f"{new} is a copy of {session}.")


@sessions.command(name="export")
@click.argument("session", metavar="S")
@of_user
def sessions_export(session: str, user: str) -> None:
    """Print the state and all messages of a session as JSON."""
    store, keys = folder.named(here(), session, user)
    _values.echo(Sessions(store, "").export(keys.session, keys.user))


@sessions.command(name="delete")
@click.argument("session", metavar="S")
@of_user
def sessions_delete(session: str, user: str) -> None:
    """Delete a session with its log and results for good. The user's memory stays."""
    known, who = _changeable("delete", user)
    known.delete(session, who)
    console.print_line(f"{session} is deleted.")


def _changeable(verb: str, user: str) -> tuple[Sessions, str]:
    """The sessions of this folder for a change, and the user."""
    run_detection.refuse(here(), f"sessions {verb}")
    store, keys = folder.named(here(), USER, user)
    return Sessions(store, ""), keys.user


@sessions.command(name="repair")
@click.argument("session", metavar="S")
@of_user
@as_json
def sessions_repair(session: str, user: str, as_json: bool) -> None:
    """Repair a session with a damaged log or state. Rows that cannot stay are kept beside it."""
    run_detection.refuse(here(), "sessions repair")
    done = repair.repair(*folder.named(here(), session, user))
    lines = [done.fault, f"{done.rows} rows of the log stay, and the state is rebuilt from them."]
    lines += [f"{done.lost} bytes are set aside in {done.aside}."] if done.lost else []
    lines += [f"{done.missing} rows that the state had seen are lost."] if done.missing else []
    _values.show(done, lines if done.fault else ["Nothing is damaged."], as_json=as_json)


@sessions.command(name="rules")
@click.argument("session", metavar="S")
@click.argument("verb", type=click.Choice(rule_changes.VERBS), required=False)
@click.argument("rules", nargs=-1, metavar="[RULE...]")
@of_user
@as_json
def sessions_rules(session: str, verb: str | None, rules: tuple[str, ...], user: str, as_json: bool) -> None:
    """Show the rules of a session; `allow`, `deny`, `ask` add to them, `drop` removes some. A rule is like one in tools.json:
    `execute`, or `execute(git *)`."""
    run_detection.refuse(here(), "sessions rules")
    store, keys = folder.named(here(), session, user)
    found = rule_changes.changed(store, keys, verb, rules) if verb else rule_changes.known(store, keys)
    lines = [f"{name:<6} {rule}" for name in rule_changes.KINDS for rule in found.get(name, [])]
    _values.show(found, lines or ["The session has no rules."], as_json=as_json)
