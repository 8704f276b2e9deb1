"""A person's influence on a running mission: pause, stop, resume, and notes to the next runs."""

from __future__ import annotations

import getpass

from harness.base import clock
from harness.base.errors import UsageFault
from harness.decision import person_notes
from harness.mission import lease, mission, roles
from harness.state import names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import mission_lock, run_detection

HALTS = {"pause": (names.PAUSE, "Paused"), "stop": (names.STOP, "Stopped")}


def halt(layout: Layout, verb: str, why: str) -> str:
    """Write PAUSE or STOP, with user, time and reason; returns what happens next."""
    run_detection.refuse(layout, verb)
    mission.check_format(layout)
    name, word = HALTS[verb]
    words = f"{verb} by {who()} at {clock.stamp(clock.now())}{': ' if why else ''}{' '.join(why.split())}\n"
    there = State(layout).exists(name)
    if not there:
        State(layout).put(name, words.encode())
    said = f"{word} already ({_first_line(layout, name)})." if there else f"{word}."
    return f"{said} {_next(layout)}. To continue: {command('resume')}"


def resume(layout: Layout) -> str:
    """Remove PAUSE and STOP; returns what happens next."""
    run_detection.refuse(layout, "resume")
    mission.check_format(layout)
    there = [(name, _first_line(layout, name)) for name, _ in HALTS.values() if State(layout).exists(name)]
    for name, _ in there:
        State(layout).remove(name)
    loop = mission_lock.looping(layout)
    then = "run.sh continues the mission" if loop else f"Start it: {command()}"
    if not there:
        return f"The mission is neither paused nor stopped. {then}."
    ended = "; ".join(f"{name} ({words})" if words else name for name, words in there)
    return f"Removed {ended}. {then}."


def steer(layout: Layout, words: str, *, once: bool = False) -> str:
    """Add a paragraph to STEER.md, or with `once` a note for one prompt; returns its readers and its duration."""
    run_detection.refuse(layout, "steer")
    mission.check_format(layout)
    if not words.strip():
        raise UsageFault(f"Give a note for the next runs, such as: {command('steer')} 'use the standard library only'")
    readers = ", ".join(_readers(layout))
    if once:
        person_notes.add(layout, words.strip(), who(), clock.stamp(clock.now()))
        return f"Noted. Only the next run of {readers} reads it."
    with State(layout).lock("state"):
        old = steering(layout)
        above = old.rstrip("\n") + "\n" if old.strip() else ""
        one = "\n  ".join(words.strip().split("\n"))  # indented, so that it stays one paragraph for `unsay`
        State(layout).put(names.STEER, f"{above}{one}\n".encode("utf-8", "backslashreplace"))
    place = layout.shown(names.STEER)
    return f"Added to {place}. Every next run of {readers} reads it, until you remove it: {command('steer --list')}"


def listed(layout: Layout) -> list[tuple[str, str]]:
    """The notes as (duration, text), in the order of the numbers of `unsay`: the paragraphs of STEER.md, then the notes for one
    prompt."""
    lasting = [("until removed", text) for text in _paragraphs(steering(layout))]
    return lasting + [("once", one.text) for one in person_notes.waiting(layout)]


def unsay(layout: Layout, number: int) -> str:
    """Remove the note with this number in `listed`; returns its text."""
    run_detection.refuse(layout, "steer")
    with State(layout).lock("state"):
        lasting, single = _paragraphs(steering(layout)), person_notes.waiting(layout)
        if not 0 < number <= len(lasting) + len(single):
            raise UsageFault(f"There is no {number}: {command('steer --list')} shows {len(lasting) + len(single)}.")
        if number > len(lasting):
            one = single[number - len(lasting) - 1]
            person_notes.remove(layout, one, who(), clock.stamp(clock.now()))
            return f"Removed: {one.text}"
        gone = lasting.pop(number - 1)
        State(layout).put(names.STEER, "".join(f"{text}\n" for text in lasting).encode())
    return f"Removed: {gone}"


def _paragraphs(text: str) -> list[str]:
    """The paragraphs of STEER.md: each unindented line, with the indented lines below it."""
    found: list[str] = []
    for line in text.split("\n"):
        if line.startswith((" ", "\t")) and found:
            found[-1] += "\n" + line
        elif line.strip():
            found.append(line)
    return found


def steering(layout: Layout) -> str:
    """The person's notes to the next runs; "" for none."""
    mission.check_format(layout)
    return State(layout).text(names.STEER) or ""


def _next(layout: Layout) -> str:
    """What happens to open runs."""
    alive = [one.run for one in lease.alive(layout)]
    if alive:
        some = f"The runs under way ({', '.join(alive)}) continue to their ends"
        one = f"The run under way ({alive[0]}) continues to its end"
        return f"{some if alive[1:] else one}, then nothing starts"
    return "run.sh ends before its next run" if mission_lock.looping(layout) else "No run is under way, and none starts"


def _first_line(layout: Layout, name: str) -> str:
    return (State(layout).data(name) or b"").decode("utf-8", "replace").strip().split("\n")[0]  # not always text


def _readers(layout: Layout) -> list[str]:
    """The roles whose prompts show the notes."""
    known = (roles.load(layout, name) for name in roles.known(layout))
    return [one.name for one in known if "steer" in one.reads and not one.answers]


def who() -> str:
    """The name of the current user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return "a person"
