"""The commands about conversations, as a person reads them."""

from __future__ import annotations

import json
import re

from tests.agents.modelserver import Reply, serving
from tests.cli.test_ask import brain, configure
from tests.missions import CHECKOUT, House


def test_sessions_are_listed_shown_searched_and_ruled(house: House) -> None:
    """Each with JSON; a request is made again, byte for byte."""
    with serving(brain) as server:
        configure(house.project, server)
        assert house.harness("sessions", "list").out == "There are no sessions here.\n"
        house.harness("ask", "where are the herons")
        house.harness("ask", "--session", "two", "--user", "bob", "hello")
        listed = house.harness("sessions", "list").out
        assert "default (default, assistant): 1 calls; ok: where are the herons" in listed and "two (bob" in listed
        assert len(json.loads(house.harness("sessions", "list", "--user", "bob", "--json").out)) == 1
        shown = house.harness("sessions", "show", "default", "--messages").out
        assert "turns 1-1" in shown and "Person: where are the herons" in shown and "Agent: answer 1" in shown
        assert json.loads(house.harness("sessions", "show", "default", "--json").out)["calls"][0]["outcome"] == "ok"
        turn = house.harness("sessions", "show", "default", "--turn", "1")
        assert turn.code == 0 and "equal to the sent request, byte for byte" in turn.out
        assert house.harness("sessions", "search", "herons").out.startswith("default: Person: where are the herons")
        assert house.harness("sessions", "search", "pelicans").out == "No matches.\n"
        assert house.harness("sessions", "interrupt", "default", "stop").out == "No call is running or waiting there.\n"
        assert "The session has no rules." in house.harness("sessions", "rules", "default").out
        assert house.harness("sessions", "rules", "default", "allow", "execute(git *)").out == "allow  execute(git *)\n"
        assert json.loads(house.harness("sessions", "rules", "default", "--json").out)["allow"] == ["execute(git *)"]


def test_the_keys_are_those_of_the_contract_page(house: House) -> None:
    """The table in docs/contract.md."""
    table = (CHECKOUT / "docs/contract.md").read_text().split("## JSON\n", 1)[1].split("\n## ", 1)[0]
    rows = dict(re.findall(r"^\| `((?:ask|sessions)[^`]+)` \| (.*) \|$", table, re.M))
    with serving(brain) as server:
        configure(house.project, server)
        for words, keys in rows.items():
            named = {"WORDS": "hello", "S": "default"}
            done = house.harness(*(named.get(word, word) for word in words.split()), "--json")
            found = json.loads(done.out)
            found = found[0] if isinstance(found, list) else found
            assert sorted(found) == sorted(re.findall(r"`(\w+)`", keys.split(":")[0])), words
    assert len(rows) == 7


def test_a_session_that_cannot_be_read_is_named_behind_the_list(house: House) -> None:
    """Torn, or of another format: a line each, and 65; the others are listed."""
    with serving(brain) as server:
        configure(house.project, server)
        house.harness("ask", "where are the herons")
    folder = house.project / ".harness/sessions/default"
    for name, data in (("torn", "{"), ("older", '{"format": 1, "user": "default", "session": "older"}')):
        (folder / name).mkdir()
        (folder / name / "state.json").write_text(data)
    done = house.harness("sessions", "list")
    assert (done.code, done.out.count("where are the herons"), done.err.count("\n")) == (65, 1, 2), done
    assert "torn/state.json: it is torn" in done.err and "this harness reads format 2" in done.err
    assert len(json.loads(house.harness("sessions", "list", "--json").out)) == 1


def test_a_damaged_session_is_named_and_repaired(house: House) -> None:
    """The message of the fault names the command, which says what it did and where the rest is."""
    with serving(brain) as server:
        configure(house.project, server)
        house.harness("ask", "where are the herons")
        house.harness("ask", "and the pelicans")
        assert house.harness("sessions", "repair", "default").out == "Nothing is damaged.\n"
        log = house.project / ".harness/sessions/default/default/log.jsonl"
        log.write_bytes(log.read_bytes().replace(b"pelicans", b"pelicanz", 1))
        done = house.harness("ask", "hello")
        words = re.findall(r"`harness (.*?)`", done.err)
        assert done.code == 65 and words == ["sessions repair SESSION --user USER"]
        user, session = log.parent.parts[-2:]  # from the path that the message names
        assert str(log) in done.err
        done = house.harness(*words[0].replace("SESSION", session).replace("USER", user).split())
        assert done.code == 0 and "rows of the log stay" in done.out and "damaged/000001.jsonl" in done.out
        assert house.harness("ask", "hello").code == 0
        shown = house.harness("sessions", "show", "default", "--messages").out
        assert "where are the herons" in shown and "pelican" not in shown


def test_what_there_is_not_is_refused(house: House) -> None:
    """With 64; and nothing is made by asking."""
    with serving(lambda _: Reply("x")) as server:
        configure(house.project, server)
        for words in (
            ["show", "none"],
            ["show", "none", "--turn", "1"],
            ["rules", "none"],
            ["rules", "none", "deny", "x"],
        ):
            assert house.harness("sessions", *words).code == 64, words
    assert not (house.project / ".harness/sessions").exists()
