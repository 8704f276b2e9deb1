"""Every path of a mission, once. `docs/layout.md` is held to this page by a test."""

from __future__ import annotations

import os


class Layout:
    """Where things are for the mission in the working folder `project`: absolute `str` paths; nothing is touched."""

    def __init__(self, project: str, state: str = "") -> None:
        self.project = os.path.abspath(project)
        self.state = os.path.abspath(state) if state else os.path.join(self.project, ".harness")
        under = self.state + "/"
        self.format = under + "format"
        self.mission = under + "mission.json"
        self.config = under + "config.toml"
        self.spec = under + "spec.md"
        self.features = under + "features.json"
        self.contract = under + "validation-contract.md"
        self.contract_log = under + "contract-log.jsonl"
        self.issues = under + "issues.jsonl"
        self.orders = under + "orders.jsonl"
        self.answers = under + "answers.jsonl"
        self.raw = under + "memory/raw.md"
        self.summary = under + "memory/summary.md"
        self.memory = under + "memory/MEMORY.md"
        self.archive = under + "memory/archive.jsonl"
        self.curated = under + "memory/curated.json"
        self.runs = under + "runs"
        self.books = under + "runs.jsonl"
        self.objects = under + "objects"
        self.snapshots = under + "snapshots"
        self.checkpoints = under + "checkpoints"
        self.escalation = under + "escalation.md"
        self.escalations = under + "escalations"
        self.pause = under + "PAUSE"
        self.stop = under + "STOP"
        self.steer = under + "STEER.md"
        self.shim = under + "bin/harness"
        self.ledger = under + "ledger.json"
        self.journal = under + "journal"
        self.locks = under + "locks"
        self.cache = under + "cache"
        self.replays = under + "replays"
        self.hooks = under + "hooks"
        self.roles = under + "roles"
        self.git = under + ".git"
        self.ignore = under + ".ignore"

    @property
    def asked_spec(self) -> str:
        """The SPEC.md that people write, in the working folder."""
        return self.project + "/SPEC.md"

    @property
    def mission_lock(self) -> str:
        """Held by the one run that may change the mission, and by its guardians."""
        return self.locks + "/mission"

    @property
    def state_lock(self) -> str:
        """Held for the milliseconds of one append or one journal."""
        return self.locks + "/state"

    @property
    def loop_lock(self) -> str:
        """Held by a looping run.sh."""
        return self.locks + "/loop"

    def run(self, run_id: str) -> RunLayout:
        """The files of one run."""
        return RunLayout(os.path.join(self.runs, run_id), os.path.join(self.locks, "run-" + run_id))

    def live(self) -> tuple[str, ...]:
        """Files of the live set that are replaced whole; an agent never writes them."""
        return (
            self.format,
            self.mission,
            self.config,
            self.spec,
            self.features,
            self.contract,
            self.summary,
            self.memory,
            self.curated,
            self.escalation,
        )

    def grown(self) -> tuple[str, ...]:
        """Files that only ever grow, by whole lines, and whose length the ledger knows."""
        return (self.contract_log, self.issues, self.orders, self.answers, self.archive, self.books)

    def relative(self, path: str) -> str:
        """The path as people read it: below the working folder where it lies there."""
        inside = self.project + "/"
        return path[len(inside) :] if path.startswith(inside) else path


class RunLayout:
    """The files of one run's folder, and the lock that says the run is open."""

    def __init__(self, folder: str, lock: str) -> None:
        self.folder = folder
        self.lock = lock
        under = folder + "/"
        self.context = under + "context.json"
        self.manifest = under + "manifest.json"
        self.prompt = under + "prompt.md"
        self.stream = under + "stream.jsonl"
        self.stderr = under + "stderr.log"
        self.reply = under + "reply.md"
        self.notes = under + "notes.jsonl"
        self.receipts = under + "receipts.jsonl"
        self.result = under + "result.json"
        self.refused = under + "refused"


def identity_file(folder: str, role: str) -> str:
    """The identity of a role: what it knows across missions."""
    return os.path.join(folder, role + ".md")


def evidence_file(folder: str) -> str:
    """Which mission, feature, run and sequence number said what, for all identities in `folder`."""
    return os.path.join(folder, "evidence.jsonl")


def home() -> str:
    """HARNESS_HOME: the checkout (or the packed copy beside the package) with run.sh and roles/."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    checkout = os.path.dirname(package)
    fallback = checkout if os.path.exists(os.path.join(checkout, "run.sh")) else os.path.join(package, "home")
    return os.environ.get("HARNESS_HOME") or fallback


def command(words: str = "") -> str:
    """A command of ours as whoever reads it can type it: run.sh as it was started (HARNESS_CALLED), else `harness`."""
    called, own = os.environ.get("HARNESS_CALLED") or "harness", os.environ.get("HOME", "") + "/"
    plain = called.replace("/", "").replace(".", "").replace("-", "").replace("_", "").isalnum()
    if not plain:
        called = "'" + called.replace("'", "'\\''") + "'"
    elif len(own) > 2 and called.startswith(own):
        called = "~/" + called.removeprefix(own)
    return f"{called} {words}".strip()


def identity_folder() -> str:
    """$HARNESS_IDENTITY, else identity/ of the checkout, else the user's data folder for an installed package."""
    named = os.environ.get("HARNESS_IDENTITY")
    if named:
        return os.path.abspath(named)
    root = home()
    if not root.endswith("/harness/home"):
        return os.path.join(root, "identity")
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(data, "harness", "identity")
