"""Golden missions of on-disk format 2: makes the archives of this folder, and their facts.

    python tests/formats/v2/make.py            make every archive again (other times, other random ids)
    python tests/formats/v2/make.py middle     or some

`tree` and `folder` are by the harness of KILLED, the others by that of COMMIT, both from this repository's history, with the
interpreter that runs this file. Offline. Everything happens below /tmp/golden, since prompts and the shim contain absolute paths.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

COMMIT = "353e5fb5dc59314a3bc76dc888462bed7b24ce49"
KILLED = "23a1533a8c944ecc29b86bc9661c84667af3c955"
VERSION, FORMAT = "0.1.0", "2"
HERE = Path(__file__).resolve().parent
GOLDEN = Path("/tmp/golden")
CHECKOUT, PYTHON = GOLDEN / "harness", GOLDEN / "python"
MTIME = 1795909792  # the time of COMMIT
HOST = "golden"
DAY = 24 * 3600
PARTS = ("project", "identity", "state", "scripts", "agent")
DROPPED = ".harness/cache"
USED = {"model": "small", "input": 900, "cache_read": 4000, "output": 120, "turns": 3}
HALF = "Half of it."
TRICK = "cat >file reads standard input to its end, so a small file needs no editor"

Json = dict[str, Any]


# ---- where a mission is made


class CheckEnvironment:
    """/tmp/golden/<name>: a project, an identity folder, and scripts for the scripted agent; the harness of COMMIT runs in it."""

    def __init__(self, name: str) -> None:
        self.name, self.top = name, GOLDEN / name
        self.project, self.state = self.top / "project", self.top / "project" / ".harness"
        tools = f"{PYTHON}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.env = {"PATH": tools, "HOME": f"{self.top}/home", "TMPDIR": f"{self.top}/tmp", "TERM": "dumb", "TZ": "UTC"}
        self.env |= {"HARNESS_IDENTITY": f"{self.top}/identity", "HARNESS_CALLED": "run.sh", "LC_ALL": "C.UTF-8"}
        self.env |= {"XDG_STATE_HOME": f"{self.top}/state"}
        self.env |= {
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def clear(self) -> None:
        """Create an empty place."""
        shutil.rmtree(self.top, ignore_errors=True)
        for name in ("home", "tmp", *PARTS[:2]):
            (self.top / name).mkdir(parents=True)

    def write(self, name: str, text: str) -> None:
        """Write a file below the place."""
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def repository(self) -> None:
        """Make a repository whose first commit is the project's content."""
        self.git("init", "-q", "-b", "main", "--template=")
        self.git("add", "-A")
        self.git("-c", "user.name=golden", "-c", "user.email=golden@localhost", "commit", "-q", "-m", "begin")

    def git(self, *words: str) -> str:
        """The output of git."""
        return self.call(["git", *words]).stdout.strip()

    def call(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; it must succeed."""
        return subprocess.run(words, cwd=self.project, env=self.env, capture_output=True, text=True, check=True)

    def harness(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run run.sh with these words; any exit code is accepted."""
        words = (str(CHECKOUT / "run.sh"), *words)
        quiet = subprocess.DEVNULL
        return subprocess.run(
            words, cwd=self.project, env=self.env, stdin=quiet, capture_output=True, text=True, check=False
        )

    def run(self, line: str, code: int = 0, *more: str) -> None:
        """Run run.sh with the words of a line, and more; it must end with this code."""
        done = self.harness(*line.split(), *more)
        said = f"{done.stdout}{done.stderr}".rstrip()
        say(f"  [{done.returncode}] {line} {' '.join(more)}\n      " + said.replace("\n", "\n      "))
        if done.returncode != code:
            raise SystemExit(f"{self.name}: '{line}' ended with {done.returncode}, not {code}")

    def begin(self, line: str) -> subprocess.Popen[bytes]:
        """One run of a role in the background; on return it is open."""
        before = self.runs()
        quiet = subprocess.DEVNULL
        words = [str(CHECKOUT / "run.sh"), *line.split()]
        made = subprocess.Popen(words, cwd=self.project, env=self.env, stdin=quiet, stdout=quiet, stderr=quiet)
        until(lambda: any((path / "context.json").exists() for path in self.runs() if path not in before))
        return made

    def runs(self) -> list[Path]:
        """The folders of the runs."""
        return sorted((self.state / "runs").iterdir())

    def script(self, name: str, *steps: Json) -> None:
        """Write the steps of the scripted agent for the runs that `name` serves."""
        self.write(f"scripts/{name}.jsonl", "".join(json.dumps(step) + "\n" for step in steps))

    def dying(self, line: str, target: str, program: str = "") -> None:
        """One run of a role that is killed at its call of a function; `program` is a condition on its arguments."""
        role, feature = line.split()
        module, name = target.rsplit(".", 1)
        code = (
            f"import os, signal, sys, importlib\nmodule = importlib.import_module('{module}')\n"
            f"real = module.{name}\ndef dying(*args, **kwargs):\n    if {program or 'True'}:\n"
            f"        os.kill(os.getpid(), signal.SIGKILL)\n    return real(*args, **kwargs)\nmodule.{name} = dying\n"
            f"sys.argv = ['-m', '{CHECKOUT}/roles/{role}.py', '{feature}']\n"
            "from harness.run.__main__ import main\nraise SystemExit(main())\n"
        )
        env = {**self.env, "HARNESS_HOME": str(CHECKOUT), "PYTHONPATH": str(CHECKOUT)}
        env |= {"HARNESS_PROJECT": str(self.project), "HARNESS_STATE": str(self.state), "HARNESS_ROLE": role}
        env |= {"FEATURE_ID": feature, "HARNESS_RUN_ID": f"{int(time.time())}-{role}-{feature}"}
        words = [f"{CHECKOUT}/.venv/bin/python", "-P", "-c", code]
        done = subprocess.run(words, cwd=self.project, env=env, capture_output=True, text=True, check=False)
        say(f"  [{done.returncode}] {line}, killed at {target}")
        if done.returncode != -signal.SIGKILL:
            raise SystemExit(f"{self.name}: it was not killed: {done.stdout}{done.stderr}")


def say(text: str) -> None:
    """Print a progress line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + 30
    while not holds():
        if time.monotonic() > end:
            raise SystemExit("that never came to be")
        time.sleep(0.02)


def family(pid: int) -> list[int]:
    """A process and its descendants, parents first."""
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in below for one in family(int(child)))]


def reply(**value: Any) -> Json:
    """A scripted step that prints a reply."""
    return {"say": f"```json harness\n{json.dumps(value)}\n```"}


def put(name: str, text: str) -> Json:
    """A scripted step that writes a file."""
    return {"run": f"cat >{name} <<'END'\n{text}\nEND"}


def used(**values: Any) -> Json:
    """A scripted step that reports usage."""
    return {"usage": {**USED, **values}}


def config(*lines: str) -> str:
    """Write config.toml with the scripted agent."""
    return "\n".join([*lines, "[agents.scripted]", 'path = "../scripts"', ""])


# ---- the missions


def done(place: CheckEnvironment) -> None:
    """The todo example to DONE by the loop."""
    shutil.copytree(CHECKOUT / "examples" / "todo", place.project, dirs_exist_ok=True)
    place.repository()
    place.run("", 0)


SPEC = """# Parts

A folder with parts, one file each.

## Part one
one.txt, and build/one.out that is made from it.

## Part two
two.txt says two; it needs three.txt.

## More parts
three.txt, four.txt, five.txt and six.txt say their number in words.
"""


def started(name: str, place: CheckEnvironment, *lines: str) -> None:
    """A project with the SPEC, and its mission with this configuration."""
    place.write("project/SPEC.md", SPEC)
    place.write("project/main.py", "print('parts')\n")
    place.write("project/.gitignore", "build/\n")
    place.repository()
    place.run("init --quietly")
    place.write("project/.harness/config.toml", config(*lines))


def planned(*numbers: int, **more: Any) -> Json:
    """A plan with a feature for each of these numbers: a claim each, with one check."""
    words = ("", "one", "two", "three", "four", "five", "six", "seven", "eight")
    features = [
        {"id": f"F-00{n}", "title": f"Part {words[n]}", "claims": [f"VAL-{words[n].upper()}"], "priority": n}
        for n in numbers
    ]
    contract = [
        {
            "id": f"VAL-{words[n].upper()}",
            "claim": f"{words[n]}.txt says {words[n]}",
            "checks": [f"grep -x {words[n]} {words[n]}.txt"],
        }
        for n in numbers
    ]
    return {"features": features, "contract": contract, **more}


def middle(place: CheckEnvironment) -> None:
    """Stopped in the middle, with every kind of line that this version writes."""
    started(
        "middle",
        place,
        'agent = "scripted"',
        "[limits]",
        "stall_after = 6",
        "max_cost_usd = 50.0",
        "[prices.small]",
        "input = 1.0",
        "output = 5.0",
    )
    place.write("project/.harness/STEER.md", "Keep every part in a file of its own.\n")
    middle_plan(place)
    middle_swept(place)
    middle_aimed(place)
    middle_disputed(place)
    middle_cut(place)
    middle_answered(place)
    middle_last(place)


def middle_plan(place: CheckEnvironment) -> None:
    """Three planner runs without an acceptable plan, a person's answer, and an accepted one."""
    plan = planned(1, 2, 3, 4, 5, 6, 8, setup="test -f main.py")
    plan["services"] = [{"name": "clock", "run": "exec sleep 600", "ready": "true", "seconds": 5}]
    first, third, fourth = (plan["contract"][index] for index in (0, 2, 3))
    first["checks"] = [{"run": "test -f main.py", "guard": True, "seconds": 30}, "test -f one.txt"]
    third["checks"] = ["sleep 1.5; grep -x three three.txt"]
    fourth["checks"] = ["grep -x 4 four.txt"]
    plan["contract"] += [
        {"id": "VAL-BUILT", "claim": "build/one.out is there", "checks": ["test -f build/one.out"]},
        {"id": "VAL-LOOK", "claim": "The parts look like parts", "manual": True},
        {"id": "VAL-SPEC", "claim": "The spec is there", "checks": ["test -f SPEC.md"]},
    ]
    plan["features"][0] |= {"claims": ["VAL-ONE", "VAL-BUILT"], "description": "one.txt and build/one.out."}
    plan["features"][0] |= {"spec_refs": ["Part one"]}
    plan["features"][3]["claims"].append("VAL-LOOK")
    plan["features"][5]["depends_on"] = ["F-003"]
    plan["features"].append({"id": "F-007", "title": "The spec stays", "claims": ["VAL-SPEC"], "priority": 7})
    place.script("planner", used(), {"say": "I shall think about it."})
    place.run("planner", 10)
    place.script("planner", used(), reply(features=[{"id": "F-001", "title": "x", "claims": []}], contract=[]))
    place.run("planner", 10)
    place.script("planner", used(cost_usd=0.02), reply(**plan))
    place.run("planner", 10)
    place.run("next", 7)
    place.run("escalation answer", 0, "Keep VAL-SPEC as it is:\nthe spec must stay where it is.")
    place.run("planner")


def middle_swept(place: CheckEnvironment) -> None:
    """F-001 passes, a sweep by hand sends it back, and it passes again; F-002 needs F-003."""
    noted = {"run": f"harness note --tag TRICK '{TRICK}'"}
    built = {"run": "mkdir -p build; echo 1 >build/one.out"}
    issue = {"title": "one.txt has no heading", "severity": "minor", "evidence": "head -1 one.txt"}
    place.script(
        "worker-F-001",
        put("one.txt", "one"),
        built,
        noted,
        used(),
        reply(status="implemented", summary="One.", issues=[issue]),
    )
    place.run("worker F-001")
    place.run("validator F-001")
    place.run("validator", 10)
    note = {"tag": "AVOID", "text": "a check that needs an ignored file is red in a fresh clone"}
    place.script(
        "worker-F-001", {"run": "echo '# nothing' >.gitignore"}, used(), reply(status="implemented", notes=[note])
    )
    place.run("worker F-001")
    place.run("validator F-001")
    place.script(
        "worker-F-002", put("two.txt", "tw"), reply(status="blocked", reason="three.txt comes first", needs=["F-003"])
    )
    place.run("worker F-002")


def middle_aimed(place: CheckEnvironment) -> None:
    """F-003: red, then red by an adversarial check, then green."""
    place.script("worker-F-003.1", put("three.txt", "thre"), used(), reply(status="implemented"))
    place.run("worker F-003")
    place.run("validator F-003", 10)
    noted = {"run": f"harness note --tag TRICK '{TRICK}'"}
    place.script("worker-F-003.2", put("three.txt", "three\nthree"), noted, used(), reply(status="implemented"))
    aim = {"claim": "VAL-THREE", "run": 'test "$(wc -l <three.txt)" -eq 1', "why": "one line is enough"}
    place.script("validator-F-003.2", used(), reply(checks=[aim]))
    place.run("worker F-003")
    place.run("validator F-003", 10)
    place.script("worker-F-003.3", put("three.txt", "three"), used(), reply(status="implemented"))
    place.run("worker F-003")
    place.run("validator F-003")
    place.run("curator")


def middle_disputed(place: CheckEnvironment) -> None:
    """F-004: its worker disputes a claim, a planner changes it; issues open, planned and closed."""
    place.script("worker-F-004", reply(status="blocked", reason="the spec wants words", disputes=["VAL-FOUR"]))
    place.run("worker F-004")
    place.run("issue", 0, "main.py says the wrong thing", "--severity", "major", "--repro", "python3 main.py")
    place.run("issue", 0, "No licence", "--severity", "nit")
    place.run("issue close I-003", 0, "--why", "there need not be one")
    four = {"id": "VAL-FOUR", "claim": "four.txt says four", "checks": ["grep -x four four.txt"]}
    four["reason"] = "the spec wants words, not digits"
    drops = [{"id": name, "reason": "the spec has seven parts"} for name in ("F-008", "VAL-EIGHT")]
    place.script("planner-F-004", used(cost_usd=0.03), reply(features=[], contract=[four], drop=drops))
    place.run("planner F-004")
    place.run("claim accept VAL-LOOK", 0, "--note", "looked at one.txt and three.txt")
    place.run("note --tag DECISION", 0, "parts are plain text, without a byte order mark")


def middle_cut(place: CheckEnvironment) -> None:
    """F-005: every early end of a worker's run."""
    number = 0

    def part(*steps: Json) -> None:
        nonlocal number
        number += 1
        place.script("worker-F-005", put("five.txt", f"fiv{number}"), used(), *steps)

    part({"fail": "limit", "reason": "five hour limit", "until": int(time.time()) + 2})
    place.run("worker F-005", 75)
    part({"fail": "idle", "reason": "fell silent"})
    place.run("worker F-005", 10)
    part({"sleep": 600})
    going = place.begin("worker F-005")
    stream = place.runs()[-1] / "stream.jsonl"
    until(lambda: stream.exists() and '"usage"' in stream.read_text())
    kill(going)
    place.run("init --quietly")
    part({"fail": "wall", "reason": "did not end in time"})
    place.dying("worker F-005", "harness.run.closing.close")
    place.run("init --quietly")
    part({"fail": "auth", "reason": "its key is refused\nLog in again: scripted login"})
    place.run("worker F-005", 69)
    part({"fail": "agent_error", "reason": "it ended with exit 3"})
    place.run("worker F-005", 10)
    part({"fail": "agent_error", "reason": "it ended with signal 11"})
    place.run("worker F-005", 10)


def middle_answered(place: CheckEnvironment) -> None:
    """A person blocks, sets and retries by hand; another run proves nothing."""
    place.run("feature block F-006", 0, "--reason", "wait for the designer")
    place.run("feature retry F-006")
    place.run("feature set F-006", 0, "priority=3")
    place.script("worker-F-005", put("five.txt", "fife"), used(), reply(status="implemented"))
    place.run("worker F-005")
    place.run("validator F-005", 10)


def middle_last(place: CheckEnvironment) -> None:
    """F-002 is done and its run dies before it closes; F-006 is blocked, and an order arrived meanwhile."""
    place.script("worker-F-002", put("two.txt", "two"), used(), reply(status="implemented", summary="Two."))
    place.dying("worker F-002", "harness.run.closing.close")
    place.run("init --quietly")
    place.script(
        "worker-F-006", used(), {"sleep": 6}, reply(status="blocked", reason="five.txt comes first", needs=["F-005"])
    )
    going = place.begin("worker F-006")
    place.run("feature set F-006", 0, "title=Part six, at last")
    going.wait()


def kill(going: subprocess.Popen[bytes]) -> None:
    """Kill a role, its guardian and all descendants at once."""
    found = family(going.pid)
    for sent in (signal.SIGSTOP, signal.SIGKILL):
        for pid in found:
            os.kill(pid, sent)
    going.wait()
    until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in found))


def journal(place: CheckEnvironment) -> None:
    """A worker's run that was killed while it closed: its journal is written, but not applied."""
    started("journal", place, 'agent = "scripted"')
    place.script("planner", reply(**planned(1, 2)))
    place.run("planner")
    place.script("worker-F-001", put("one.txt", "one"), used(), reply(status="implemented"))
    books = "any(step[1].endswith('/runs.jsonl') for step in args[1])"
    place.dying("worker F-001", "harness.state.journal._apply", books)


def waiting(place: CheckEnvironment) -> None:
    """Two agents of a list reached a limit of their vendor, one after the other."""
    events = (
        'agent = ["scripted", "mine"]',
        'confine = "off"',
        "[agents.mine]",
        f'command = ["sh", "{place.top}/agent/mine.sh"]',
        'format = "claude"',
    )
    started("waiting", place, *events)
    place.script("planner", used(), reply(**planned(1, 2)))
    place.run("planner")
    now = int(time.time())
    for name in ("worker", "validator"):
        place.script(name, {"fail": "agent_error", "reason": "nobody should have asked"})
    place.script("worker-F-001", {"fail": "limit", "reason": "weekly limit", "until": now + 3000 * DAY})
    answers(place, "echo one >one.txt\n", reply(status="implemented")["say"])
    place.run("worker F-001")
    answers(place, "", reply(checks=[])["say"])
    place.run("validator F-001")
    place.write("agent/events.jsonl", json.dumps(rejected(now + 5000 * DAY)) + "\n")
    place.run("worker F-002", 75)


def rejected(until_: int) -> Json:
    """A limit as an event of the claude CLI."""
    info = {"status": "rejected", "resetsAt": until_, "rateLimitType": "five_hour"}
    return {"type": "rate_limit_event", "rate_limit_info": info}


def answers(place: CheckEnvironment, does: str, says: str) -> None:
    """The second agent's program: its actions and messages, as the claude CLI's events."""
    usage = {
        "input_tokens": 700,
        "output_tokens": 90,
        "cache_read_input_tokens": 3000,
        "cache_creation_input_tokens": 10,
    }
    message = {"id": "m1", "content": [{"type": "text", "text": says}], "usage": usage}
    events: list[Json] = [
        {"type": "system", "subtype": "init", "model": "sonnet", "session_id": "s-1"},
        {"type": "assistant", "message": message},
        {"type": "result", "subtype": "success", "result": says, "usage": usage, "total_cost_usd": 0.04},
    ]
    place.write("agent/events.jsonl", "".join(json.dumps(event) + "\n" for event in events))
    place.write("agent/mine.sh", f"{does}cat {place.top}/agent/events.jsonl\n")


def escalated(place: CheckEnvironment) -> None:
    """Two escalations: one is answered, one is open."""
    started("escalated", place, 'agent = "scripted"')
    place.script("planner", reply(**planned(1, setup="test ! -f broken")))
    place.run("planner")
    place.script("worker-F-001", reply(status="blocked", reason="nobody says in which language"))
    place.run("worker F-001")
    place.run("next", 3)
    place.run("escalation answer", 0, "In English.")
    place.script("worker-F-001", put("one.txt", "one"), {"run": "touch broken"}, reply(status="implemented"))
    place.run("worker F-001")
    place.run("validator F-001", 10)


def interrupted(name: str, line: str) -> None:
    """A mission whose first feature has passed; the worker of the second, run.sh and all their processes are killed."""
    place = CheckEnvironment(name)
    place.clear()
    place.write("project/SPEC.md", "# Parts\n\n## Part one\none.txt says one.\n\n## Part two\ntwo.txt says two.\n")
    place.write("project/main.py", "print('parts')\n")
    place.repository()
    place.run("init --quietly")
    place.write("project/.harness/config.toml", config('agent = "scripted"', *([line] if line else [])))
    place.script("planner", reply(**planned(1, 2)))
    place.script(
        "worker-F-001",
        put("one.txt", "one"),
        {"run": "harness note --tag DECISION 'parts are plain text'"},
        used(),
        reply(status="implemented", summary="One."),
    )
    steps = (
        *(put("two.txt", "tw"), put("new.txt", "new"), {"run": "echo '# cut' >>main.py"}),
        {"run": f"harness note --tag TRICK '{TRICK}'"},
        {"run": "harness issue 'two.txt has no heading' --severity minor"},
        *(used(cost_usd=0.5), {"say": HALF}, {"sleep": 600}),
    )
    place.script("worker-F-002", *steps)
    quiet = subprocess.DEVNULL
    words = [str(CHECKOUT / "run.sh")]
    clock = subprocess.Popen(words, cwd=place.project, env=place.env, stdin=quiet, stdout=quiet, stderr=quiet)
    until(lambda: any(HALF in path.read_text() for path in place.state.glob("runs/*-F-002/stream.jsonl")))
    kill(clock)
    pack(place)


PLACES = {"tree": "", "folder": 'workplace = "project"'}
MISSIONS: dict[str, Callable[[CheckEnvironment], None]] = {
    "done": done,
    "middle": middle,
    "escalated": escalated,
    "journal": journal,
    "waiting": waiting,
}


# ---- packing


def pack(place: CheckEnvironment, folder: Path = HERE, parts: Sequence[str] = PARTS) -> None:
    """One archive of these parts of the place: sorted, without times, owners and disposable files."""
    shutil.rmtree(place.project / DROPPED, ignore_errors=True)
    place.git("repack", "-A", "-d", "-q")
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(listed(place, parts)):
            info = tar.gettarinfo(path, str(path.relative_to(place.top)))
            info.mtime, info.uid, info.gid, info.uname, info.gname = MTIME, 0, 0, "", ""
            if path.is_file() and not path.is_symlink():
                info.type, info.linkname = tarfile.REGTYPE, ""
                with path.open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    (folder / f"{place.name}.tar.gz").write_bytes(gzip.compress(held.getvalue(), 9, mtime=0))


def listed(place: CheckEnvironment, parts: Sequence[str] = PARTS) -> Iterator[Path]:
    """The files of the archive; a socket is none."""
    for name in parts:
        top = place.top / name
        yield from [path for path in [top, *top.rglob("*")] if not path.is_socket()] if top.exists() else []


def unpack(place: CheckEnvironment) -> None:
    """Unpack the archive at its place, and nothing else."""
    place.clear()
    with tarfile.open(HERE / f"{place.name}.tar.gz") as tar:
        tar.extractall(place.top, filter="tar")


# ---- facts


def facts(place: CheckEnvironment) -> Json:
    """The facts for comparison with a later version; reading them changes no file of the archive."""
    before = digests(place)
    found: Json = {"name": place.name, "version": VERSION, "commit": COMMIT, "format": FORMAT, "at": int(time.time())}
    found["next"] = told(place, "next")
    found["status"] = json.loads(place.harness("status", "--json").stdout)
    found["usage"] = json.loads(place.harness("usage", "--json").stdout)
    found["runs"] = [ran(place, row) for row in rows(place, "runs.jsonl")]
    found["features"] = on_disk(place)
    found["memory"] = place.harness("memory", "show").stdout
    found["doctor"] = place.harness("doctor").returncode
    after = digests(place)
    if changed := [path for path in {*before, *after} if before.get(path) != after.get(path)]:
        raise SystemExit(f"{place.name}: looking at it has changed {', '.join(changed)}")
    said = told(place, "init", "--quietly")
    features = {name: [one["status"], one["attempts"]] for name, one in on_disk(place).items()}
    total = json.loads(place.harness("usage", "--json").stdout)["total"]
    found["settled"] = {"said": said, "next": told(place, "next"), "features": features, "total": total}
    return found


def told(place: CheckEnvironment, *words: str) -> Json:
    """The output of a command, and its exit code."""
    ended = place.harness(*words)
    return {"code": ended.returncode, "out": ended.stdout, "err": ended.stderr}


def rows(place: CheckEnvironment, name: str) -> list[Json]:
    """The lines of an append-only file."""
    path = place.state / name
    return [json.loads(line) for line in path.read_text().split("\n") if line] if path.exists() else []


def ran(place: CheckEnvironment, row: Json) -> Json:
    """A line of the run log in short, with its prompt if it had one."""
    kept = ("run", "role", "feature", "trigger", "outcome", "verdict", "reason", "commit", "refused")
    return {**{key: row[key] for key in kept}, **prompt(place.state / "runs" / row["run"])}


def prompt(path: Path) -> Json:
    """The digest of a run's prompt, and whether its manifest's parts are that prompt byte for byte."""
    if not (path / "manifest.json").exists():
        return {"prompt": None, "rebuilt": None}
    state, parts = path.parent.parent, json.loads((path / "manifest.json").read_text())
    data = b"".join(part["text"].encode() if "text" in part else kept(state, part["object"]) for part in parts)
    return {"prompt": digest(path / "prompt.md"), "rebuilt": data == (path / "prompt.md").read_bytes()}


def kept(state: Path, name: str) -> bytes:
    """The bytes of an object."""
    return (state / "objects" / name[:2] / name[2:]).read_bytes()


def on_disk(place: CheckEnvironment) -> Json:
    """Features as in features.json."""
    path = place.state / "features.json"
    known = json.loads(path.read_text())["features"] if path.exists() else []
    return {one["id"]: one for one in known}


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digests(place: CheckEnvironment) -> dict[str, str]:
    """The digest of every file of the archive, except the cache."""
    found = (path for path in listed(place) if path.is_file())
    return {str(path): digest(path) for path in found if DROPPED not in str(path)}


# ---- the command line


def prepare(commit: str = COMMIT) -> None:
    """The checkout of a commit and the interpreter, at paths that are the same on every machine."""
    shutil.rmtree(CHECKOUT, ignore_errors=True)
    PYTHON.unlink(missing_ok=True)
    CHECKOUT.mkdir(parents=True)
    top = subprocess.run(
        ["git", "-C", str(HERE), "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=True
    )
    words = ["git", "-C", top.stdout.strip(), "archive", commit]
    data = subprocess.run(words, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(CHECKOUT, filter="tar")
    (CHECKOUT / ".venv").symlink_to(sys.prefix)
    PYTHON.symlink_to(sys.base_prefix)


def neutral_host(script: str = __file__) -> None:
    """Continue in a UTS namespace with a host name of our own, if the system allows it."""
    if socket.gethostname() == HOST or os.environ.get("GOLDEN_HOST"):
        return
    os.environ["GOLDEN_HOST"] = "asked"
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    inner = "import socket, sys; socket.sethostname(sys.argv[1])"
    if subprocess.run(["unshare", "--uts", *rights, "true"], check=False).returncode == 0:
        command = f'"$0" -c "{inner}" {HOST} && exec "$0" "$@"'
        words = ["unshare", "--uts", *rights, "sh", "-c", command, sys.executable, script, *sys.argv[1:]]
        os.execvp(words[0], words)


def make(names: list[str]) -> None:
    """Make the archives and their facts."""
    for name in names:
        say(name)
        place = CheckEnvironment(name)
        place.clear()
        MISSIONS[name](place)
        pack(place)
        unpack(place)
        (HERE / f"{name}.json").write_text(json.dumps(facts(place), ensure_ascii=False, indent=1) + "\n")


def main() -> None:
    """make.py [NAME…]"""
    words = sys.argv[1:]
    if unknown := [word for word in words if word not in (*MISSIONS, *PLACES)]:
        raise SystemExit(f"{', '.join(unknown)}: say some of {', '.join((*MISSIONS, *PLACES))}")
    neutral_host()
    if chosen := [name for name in MISSIONS if name in words or not words]:
        prepare(COMMIT)
        make(chosen)
    if chosen := [name for name in PLACES if name in words or not words]:
        prepare(KILLED)
        for name in chosen:
            interrupted(name, PLACES[name])


if __name__ == "__main__":
    main()
