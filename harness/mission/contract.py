"""validation-contract.md: the claims that must hold, and the checks that decide them.

```sh setup inputs=package-lock.json            ```sh service name=web ready="curl …" seconds=60
### VAL-AUTH-001: one observable sentence       then ```sh check [guard] [seconds=900] blocks, or the line `manual`
"""

from __future__ import annotations

import re
import shlex

from harness.base import schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.base.schema import Line, PlainText, Positive
from harness.mission.features import Feature, find
from harness.state import documents, names
from harness.state.layout import Layout, restoring
from harness.state.state import State

PREAMBLE = """# Validation contract

Each claim is decided by its checks, run with `bash -euo pipefail -c` in the working folder; the exit status decides.
"""
MANUAL = "manual"
INPUT = re.compile(r"(?:(?!\.\.?(?:/|$))[\w.@+-]+(?:/(?!$)|$))+")  # of a setup


class Check(Record):
    """One command; `seconds` None means check_seconds of the config; a `guard` may be green before the work."""

    run: PlainText
    seconds: Positive | None = None
    guard: bool = False


class Claim(Record):
    """One sentence and its checks; a manual claim has no checks: a person decides it."""

    id: str
    text: str
    checks: list[Check] = []
    manual: bool = False


class Service(Record):
    """A server that checks need; `ready` is a command that succeeds within `seconds` once the server answers."""

    name: str
    run: PlainText
    ready: Line
    seconds: Positive = 60


class Contract(Record):
    """The whole contract; `setup` is "" if there is none, and depends on `setup_inputs`, or on the commit if it names none."""

    setup: str = ""
    setup_inputs: list[str] = []
    services: list[Service] = []
    claims: list[Claim] = []

    def claim(self, claim_id: str) -> Claim:
        """The claim with this id; raises UsageFault, with the known ids, if there is none."""
        return find(self.claims, claim_id, "claim")

    def of(self, claim_ids: list[str]) -> list[Claim]:
        """The claims with these ids that exist, in the order asked."""
        known = {claim.id: claim for claim in self.claims}
        return [known[claim_id] for claim_id in claim_ids if claim_id in known]


def load(layout: Layout) -> Contract:
    """The contract of the mission, empty before the first plan; raises BrokenFile if it is malformed."""
    text = State(layout).text(names.CONTRACT)
    return Contract() if text is None else parse(text, layout.path(names.CONTRACT))


def require(layout: Layout, found: list[Feature]) -> None:
    """Raise BrokenFile if the contract lacks a claim of a feature: without a check, the feature would pass."""
    known = {claim.id for claim in load(layout).claims} if found else set()
    for feature in found:
        missing = [claim for claim in feature.claims if claim not in known]
        if missing or not feature.claims:
            fault = f"it lacks {', '.join(missing) or 'every claim'} of {feature.id}"
            raise BrokenFile(layout.path(names.CONTRACT), fault, remedy=f"Restore the claim. {restoring()}")


def parse(text: str, path: str) -> Contract:
    """The contract in a Markdown text; raises BrokenFile with the line of the first fault."""
    contract = Contract()
    lines: list[int] = []
    for block in documents.blocks(text):
        if block.kind == "heading" and block.level == 3:
            contract.claims.append(_claim(block, path))
            lines.append(block.line)
        elif block.kind == "fence":
            _take_fence(contract, block, path)
        elif block.kind == "paragraph" and contract.claims and block.text.strip() == MANUAL:
            contract.claims[-1].manual = True
        elif contract.claims or (block.kind == "heading" and block.level != 1):
            fault = f"'{block.text[:60].strip()}' does not belong in a contract"
            raise BrokenFile(path, fault, line=block.line, remedy=HELP)
    _check_claims(contract.claims, lines, path)
    return contract


def _check_claims(claims: list[Claim], lines: list[int], path: str) -> None:
    known: set[str] = set()
    for claim, line in zip(claims, lines, strict=True):
        if claim.manual == bool(claim.checks):
            fault = f"{claim.id} needs either checks or the line '{MANUAL}', not both or neither"
            raise BrokenFile(path, fault, line=line, remedy=HELP)
        if claim.id.lower() in known:
            fault = f"claim '{claim.id}' appears twice"
            raise BrokenFile(path, fault, line=line, remedy="Give every claim a unique id.")
        known.add(claim.id.lower())


HELP = "A claim is '### ID: sentence' with ```sh check blocks, or the line 'manual'; see docs/contract.md."


def _claim(block: documents.Block, path: str) -> Claim:
    name, colon, text = block.text.partition(":")
    if not colon or not schema.is_name(name) or not text.strip():
        raise BrokenFile(path, f"the heading '{block.text[:60]}' is not 'ID: sentence'", line=block.line, remedy=HELP)
    return Claim(id=name, text=text.strip())


def _take_fence(contract: Contract, block: documents.Block, path: str) -> None:
    if not block.closed:
        raise BrokenFile(path, f"the block '{block.info}' is not closed", line=block.line, remedy=HELP)
    kind, options = _options(block, path)
    command = block.text.removesuffix("\n")
    if kind == "setup" and options.keys() <= {"inputs"} and not contract.claims and not contract.setup:
        contract.setup, contract.setup_inputs = command, options["inputs"].split(",") if options else []
        if bad := input_faults(contract):
            raise BrokenFile(path, bad[0], line=block.line, remedy=HELP)
    elif kind == "service" and {"name", "ready"} <= options.keys() <= {"name", "ready", "seconds"}:
        bad = schema.name_faults([*(service.name for service in contract.services), options["name"]], "service")
        if bad:
            raise BrokenFile(path, bad[0], line=block.line, remedy=HELP)
        service = Service(name=options["name"], run=command, ready=options["ready"])
        contract.services.append(service.replace(seconds=int(options.get("seconds", 60))))
    elif kind == "check" and contract.claims and options.keys() <= {"guard", "seconds"}:
        seconds = int(options["seconds"]) if "seconds" in options else None
        contract.claims[-1].checks.append(Check(run=command, seconds=seconds, guard="guard" in options))
    else:
        raise BrokenFile(path, f"the block '{block.info}' is not understood here", line=block.line, remedy=HELP)


def input_faults(known: Contract) -> list[str]:
    """What is wrong with the inputs of a setup."""
    lone = ["the setup has inputs, but no command"] if known.setup_inputs and not known.setup else []
    bad = [one for one in known.setup_inputs if not INPUT.fullmatch(one)]
    return lone + [
        f"the setup's input '{one}' is not a plain path in the project, such as web/package.json" for one in bad
    ]


def _options(block: documents.Block, path: str) -> tuple[str, dict[str, str]]:
    words = _words(block.info)
    if len(words) < 2 or words[0] != "sh":
        raise BrokenFile(path, f"the block '{block.info}' is not understood", line=block.line, remedy=HELP)
    options = {key: value for key, _, value in (word.partition("=") for word in words[2:])}
    seconds = options.get("seconds", "1")
    if not seconds.isdecimal() or seconds[0] not in "123456789":
        raise BrokenFile(path, "'seconds' must be a whole number above 0", line=block.line, remedy=HELP)
    return words[1], options


_split: dict[str, tuple[str, ...]] = {}  # cache: the checks of a contract share a few info strings


def _words(info: str) -> tuple[str, ...]:
    """The words of an info string; () if it is not shell."""
    if info not in _split:
        try:
            _split[info] = tuple(shlex.split(info))
        except ValueError:
            _split[info] = ()
    return _split[info]


def render(contract: Contract) -> str:
    """The Markdown text of a contract; `parse` is the inverse."""
    parts = [PREAMBLE]
    if contract.setup:
        parts.append(setup_block(contract))
    parts += map(service_block, contract.services)
    for claim in contract.claims:
        end = " #" if claim.text.endswith("#") else ""  # Markdown strips closing marks from a heading, once
        parts.append(f"### {claim.id}: {claim.text}{end}\n")
        for check in () if claim.manual else claim.checks:
            seconds = f" seconds={check.seconds}" if check.seconds is not None else ""
            parts.append(documents.fenced(check.run + "\n", f"sh check{' guard' if check.guard else ''}{seconds}"))
        parts += [MANUAL + "\n"] if claim.manual else []
    return "\n".join(parts)


def setup_block(contract: Contract) -> str:
    """The block of the setup."""
    inputs = f" inputs={','.join(contract.setup_inputs)}" if contract.setup_inputs else ""
    return documents.fenced(contract.setup + "\n", f"sh setup{inputs}")


def service_block(service: Service) -> str:
    """The block of a service."""
    ready = service.ready.replace("\\", "\\\\").replace('"', '\\"')
    info = f'sh service name={service.name} ready="{ready}" seconds={service.seconds}'
    return documents.fenced(service.run + "\n", info)
