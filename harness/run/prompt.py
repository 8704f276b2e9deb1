"""Composes a prompt from a role's text and files; pure. The manifest lists the prompt's parts, in order.
A part is text of the harness, or exact bytes from disk with their source; concatenation rebuilds the prompt. Of a role's text
only what precedes its first `## ` heading stands before the task, the rules follow it. The most stable parts come first, for
prompt caches; run-specific facts are in the Runtime context at the end, and the last words say what is due.
"""

from __future__ import annotations

from typing import Any

from harness.base import encoding
from harness.base.record import Record
from harness.mission import contract, features
from harness.mission.contract import Claim, Contract
from harness.mission.features import Feature
from harness.mission.issues import Issue
from harness.mission.mission import SPEC_CHARS
from harness.mission.receipts import Receipt
from harness.mission.roles import Role
from harness.state import documents
from harness.workspace.budget import WorkspaceSection

ROLE_CHARS = IDENTITY_CHARS = 6_000
PLAN_CHARS = 24_000
SUMMARY_CHARS = 3_000
RECEIPT_CHARS = 8_000
COMMON = "roles/common.md"
IDENTITY, ASKED, MEMORY = "## Your identity", "## SPEC.md", "## Memory"  # headings of their sections
ENTRIES, RUNTIME, DUE = "### Entries to curate", "## Runtime context", "## What is due now"
RULES_LEVEL = 2  # of the heading in a role's text from which it follows the task
REPLY_IN_TEXT = "Reply: end your last message with one fenced block whose info string is `json harness`.\n"


class Part(Record):
    """A part of the prompt. `source`: the path from which `data` comes (whole or a section), "" for text of the harness."""

    data: bytes
    source: str = ""


class Material(Record):
    """The material of a prompt, read from disk. Paths are as shown to the agent; texts are exact. `feature` None: the run is
    on the whole mission; `findings`: (title, text) in the order shown; `workspace` and `memory`: its
    sections, within their budget; `due`: what the run is for, in a sentence; `has_shell`: an agent of it can run commands."""

    role: Role
    identity: str
    identity_path: str
    workspace: list[WorkspaceSection] = []
    memory: WorkspaceSection | None = None
    spec: str
    spec_path: str
    summary: str
    summary_path: str
    memory_path: str
    raw_path: str
    features: list[Feature] = []
    features_path: str = ""
    contract: Contract | None = None
    contract_path: str
    claims: list[Claim] = []
    feature: Feature | None = None
    receipts: list[Receipt] = []
    receipts_path: str = ""
    findings: list[tuple[str, str]] = []
    issues: list[Issue] = []
    raw: str = ""
    repository: str = ""
    repository_path: str = ""
    steer: str = ""
    steer_once: str = ""
    runtime: list[tuple[str, str]]
    due: str
    has_shell: bool = True


def compose(material: Material) -> list[Part]:
    """The parts of the prompt; deterministic."""
    return [*stable(material), *_memory(material), *_task(material), *_rules(material), _runtime(material)]


def stable(material: Material) -> list[Part]:
    """The first parts, the same from run to run: how the role's words begin, its identity, the workspace, the spec."""
    return [
        *_spaced([begun for begun, _ in _role_words(material.role)]),
        *identity(material.role.name, material.identity, material.identity_path),
        *workspace(material.workspace),
        *(spec(material.spec, material.spec_path, material.feature) if "spec" in material.role.reads else []),
    ]


def text_of(parts: list[Part]) -> bytes:
    """The prompt's bytes."""
    return b"".join(part.data for part in parts)


def _text(text: str) -> Part:
    return Part(data=text.encode())


def cut(text: str, most: int, path: str) -> str:
    """Truncate `text` to `most` characters; the note on a cut names the path of the rest."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[… {len(text) - most} characters left out; the rest is in {path} …]\n"


def _role_words(role: Role) -> list[tuple[Part, Part]]:
    """(what precedes the task, what follows it) of the common text of all roles, and of this one's own."""
    common = cut(role.common, ROLE_CHARS, COMMON)
    own = words(role.words, role.path, len(common)).replace(source=f"roles/{role.name}.md")
    return [divided(Part(data=documents.ended(common).encode(), source=COMMON)), divided(own)]


def words(text: str, path: str, before: int) -> Part:
    """The text of a role, within the room left by the `before` characters of the common text."""
    return Part(data=documents.ended(cut(text, max(0, ROLE_CHARS - before), path).lstrip("\n")).encode(), source=path)


def divided(whole: Part) -> tuple[Part, Part]:
    """A role's text before its first heading of the second level, and from there on; the second part may be empty."""
    text = whole.data.decode()
    first = next((one.line for one in documents.blocks(text) if one.kind == "heading" and one.level == RULES_LEVEL), 0)
    lines = text.split("\n")
    begun, rest = (lines[: first - 1], lines[first - 1 :]) if first else (lines, [])
    head = "\n".join(begun).rstrip("\n") + "\n" if begun else ""
    return whole.replace(data=head.encode()), whole.replace(data="\n".join(rest).encode())


def _rules(material: Material) -> list[Part]:
    """What follows the task: how to work with the harness, for agents that run commands; and the role's rules. An agent that
    only edits files needs none where its changes are the reply."""
    common, own = (rest for _, rest in _role_words(material.role))
    told = [common, own] if material.has_shell else [] if material.role.commits else [own, _text(REPLY_IN_TEXT)]
    return _spaced(told)


def _spaced(parts: list[Part]) -> list[Part]:
    return [each for part in parts if part.data for each in (part, _text("\n"))]


def _fenced(title: str, text: str, source: str, info: str = "") -> list[Part]:
    """A heading and data of agents or people, in a fence that the data cannot close."""
    if not text.strip():
        return [_text(f"{title}\n\n(nothing yet)\n\n")]
    mark = documents.fence_for(text)
    data = Part(data=documents.ended(text).encode(), source=source)
    return [_text(f"{title}\n\n{mark}{info}\n"), data, _text(f"{mark}\n\n")]


def identity(role: str, text: str, path: str) -> list[Part]:
    """The section with a role's identity."""
    return _fenced(f"{IDENTITY} (cross-mission memory for the {role} role)", cut(text, IDENTITY_CHARS, path), path)


def workspace(sections: list[WorkspaceSection]) -> list[Part]:
    """The sections that people wrote for every agent: instructions, skills, knowledge."""
    return [part for one in sections for part in _fenced(one.title, one.text, one.source)]


def spec(text: str, path: str, feature: Feature | None) -> list[Part]:
    """The section with the spec; of a long one only the sections that the feature names."""
    if len(text) > SPEC_CHARS and feature:
        named = dict.fromkeys(one for ref in feature.spec_refs for one in documents.sections(text, ref))
        text = "\n".join([*named, f"[only the sections of this feature; the whole is in {path}]\n"]) if named else text
    return _fenced(f"{ASKED} (what the mission must bring about)", cut(text, SPEC_CHARS, path), path, "markdown")


def summary(text: str, path: str) -> list[Part]:
    """The section with the summary of the memory."""
    return _fenced(f"{MEMORY} (curated from prior iterations of this run)", cut(text, SUMMARY_CHARS, path), path)


def _memory(material: Material) -> list[Part]:
    parts = summary(material.summary, material.summary_path)
    paths = f"{material.memory_path} (curated), {material.raw_path} (as it was noted)"
    more = workspace([material.memory] if material.memory else [])
    return [*parts, *more, _text(f"More, to be read when it helps: {paths}.\n\n")]


def _task(material: Material) -> list[Part]:
    reads = material.role.reads
    parts = [_text("## Your task\n\n")]
    if material.repository.strip():
        text, path = cut(material.repository, SUMMARY_CHARS, material.repository_path), material.repository_path
        parts += _fenced(f"### The repository, as found at the start ({path})", text, path)
    if "plan" in reads:
        parts += _fenced("### The plan so far", _plan(material), material.features_path)
    if material.contract and material.contract.claims:
        text = cut(contract.render(material.contract), PLAN_CHARS, material.contract_path)
        parts += _fenced("### The validation contract", text, material.contract_path)
    if "feature" in reads and material.feature:
        parts += _fenced(f"### Feature {material.feature.id}", _feature(material.feature), material.features_path)
    if "claims" in reads and material.feature:
        text = "\n".join(map(claim_text, material.claims))
        parts += _fenced("### Claims, with the checks that decide them", text, "")
    if "findings" in reads:
        parts += _receipts(material)
        for title, text in material.findings:
            parts += _fenced(f"### {title}", text, "")
    if "issues" in reads and material.issues:
        parts += _fenced("### Open issues", _issues(material.issues), "")
    if "raw" in reads and material.raw:
        parts += _fenced(ENTRIES, material.raw, material.raw_path)
    if "steer" in reads and material.steer.strip():
        parts += _fenced("### What a person says meanwhile (STEER.md)", material.steer, "STEER.md")
    if material.steer_once:
        parts += _fenced("### What a person says to this run alone", material.steer_once, "")
    return parts


def _plan(material: Material) -> str:
    rows = []
    for feature in material.features:
        needs = f", after {', '.join(feature.depends_on)}" if feature.depends_on else ""
        claims = f"claims {', '.join(feature.claims)}"
        rows.append(f"{feature.id} [{feature.status}, {feature.attempts} tries] {feature.title} ({claims}{needs})")
    return cut("\n".join(rows), PLAN_CHARS, material.features_path)


def _feature(feature: Feature) -> str:
    lines = [feature.title, "", feature.description]
    if feature.depends_on:
        lines.append(f"Builds on: {', '.join(feature.depends_on)}")
    if feature.spec_refs:
        lines.append(f"Sections of the spec: {'; '.join(feature.spec_refs)}")
    notes = [f"- {words}" for words in map(features.words, feature.notes) if words]
    return "\n".join([*lines, *(["", "What happened to it:"] if notes else []), *notes[-12:]])


def claim_text(claim: Claim) -> str:
    """A claim and its checks, for people and agents."""
    lines = [f"{claim.id}: {claim.text}"]
    if claim.manual:
        lines.append("  (a person decides)")
    for number, check in enumerate(claim.checks, start=1):
        lines.append(f"  check {number} of {len(claim.checks)}{', a guard' if check.guard else ''}:")
        lines += [f"    {line}" for line in check.run.split("\n")]
    return "\n".join(lines)


def _receipts(material: Material) -> list[Part]:
    if not material.receipts:
        return []
    red = [receipt_text(receipt) for receipt in material.receipts if not receipt.green]
    green = [f"{one.claim}: green\n{one.remarks}".rstrip() for one in material.receipts if one.green]
    text = cut("\n".join(red + green), RECEIPT_CHARS, material.receipts_path)
    return _fenced("### The last receipts", text, material.receipts_path)


def receipt_text(receipt: Receipt) -> str:
    """A receipt, for people and agents."""
    head = f"{receipt.claim}: {receipt.verdict} after {receipt.seconds:.1f} s\n$ {receipt.command}\n"
    return head + documents.ended(receipt.output) + receipt.remarks


def _issues(found: list[Issue]) -> str:
    rows = []
    for issue in found:
        more = [getattr(issue, key) for key in ("evidence", "repro", "suggested_fix", "code_pointer")]
        rows.append(f"{issue.id} [{issue.severity}] {issue.title}" + "".join(f"\n  {text}" for text in more if text))
    return "\n".join(rows)


def _runtime(material: Material) -> Part:
    lines = [f"- {key}{': ' if ' ' in key else '='}{value}" for key, value in material.runtime]
    return _text(f"{RUNTIME}\n" + "\n".join(lines) + f"\n\n{DUE}\n\n{material.due}\n")


def runtime(context: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines of the Runtime context, from a run's facts; an empty fact has no line."""
    rows = [
        ("FEATURE_ID", context["feature"]),
        ("TRIGGER", " ".join(context["trigger"].split())),  # from an environment variable: on one line
        ("REASON", " ".join(context["reason"].split())),
        ("Working directory", context["workplace"]),
        ("Top of its repository, from which git names files", context.get("repository", "")),
        ("State directory", context["state"]),
        ("Run ID", context["run"]),
        ("Harness command", f"{encoding.shell_word(context['shim'])} --run {context['run']}"),
    ]
    return [(key, value) for key, value in rows if value]
