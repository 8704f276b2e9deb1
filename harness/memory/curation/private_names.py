"""Decides which notes may leave a mission: none that names its project, a host, a person or an id, or is gated. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.memory import _word_frequency, gates
from harness.memory._words import stem

# Names common to all projects, which reveal nothing about this one.
COMMON_FILES = re.compile(
    r"makefile|dockerfile|readme\.md|agents\.md|spec\.md|package(-lock)?\.json|tsconfig\.json|pyproject\.toml|setup\.py"
    r"|conftest\.py|requirements\.txt|cargo\.(toml|lock)|go\.(mod|sum)|(yarn|uv)\.lock|pnpm-lock\.yaml|\.env"
    r"|\.(git|docker)ignore|docker-compose\.ya?ml"
)
COMMON_PARTS = re.compile(
    r"src|tests?|e2e|specs?|docs?|libs?|apps?|main|index|core|common|shared|utils?|helpers?|config|settings|build|dist|scripts?|tools?"
    r"|api|web|server|client|data|models?|views?|routes?|types?|assets|public|static|packages?|modules?|services?|plugins?|internal|cmd"
    r"|root|home|cache|temp|tmp|logs?|output|vendor|node_modules|migrations?|fixtures?|mocks?|base|default|setup|errors?|standard"
    r"|terraform|ansible|helm|kubernetes|k8s|kafka|postgres|redis|django|rails|react|android|infra|dotfiles|playground|sandbox|demo"
    r"|examples?|template|workspace|website"
)
RARE = 900  # minimum weight (`_word_frequency.special`) of a folder's bare name: "billing", not "whole"
PROJECT = "project: "  # before the name of the project among its names
PART = "part: "  # before the bare name of a folder or file
_OF_PART = re.compile(
    r"\b(?:the|our) [`\"']?([a-z][\w-]+)[`\"']? "
    r"(?:module|package|folder|directory|component|crate|(?:micro-?)?service|subsystem)\b"
    r"|\b(?:module|package|folder|directory|component|crate|(?:micro-?)?service|subsystem) [`\"']([a-z][\w-]+)[`\"']"
)
_SPOKEN = re.compile(  # needs no word such as "module" next to it
    r"[a-z0-9]+(?:_[a-z0-9]+)+|[a-z0-9]+(?:-[a-z0-9]+)*-(?:service|server|client|app|api|lib|core|ui|module)"
)

# "UTF-8", "CVE-2021-44228": public ids, not a project's.
_STANDARD = (
    r"AES|ANSI|ASCII|ASN|BASE|BCP|CP|CRC|CVE|CWE|DIN|DSA|ECMA|ED|EN|EPSG|ERR|ES|FIPS|GHSA|GPT|HMAC|HTTP|IEC|IEEE|IPV|ISO|ITMS|JDK|JEP"
    r"|JSON|JSR|KB|KEP|KIP|LATIN|MD|MP|MS|NIST|ORA|OSI|PCI|PEP|PHP|PKCS|PLS|RFC|RHSA|RS|RSA|SHA|SOC|SQL|SQLSTATE|SSL|TC|TIS|TLS|TNS|UCS|USB"
    r"|USN|UTF|WCAG|WINDOWS"
)
_IDS = re.compile(
    r"\b(?:F|VAL|ISS|ISSUE|FEAT|FEATURE)-[A-Za-z0-9-]*[0-9]\b"
    rf"|(?<![\w-])(?!(?:{_STANDARD})-)[A-Z][A-Z0-9]{{1,9}}-[0-9]{{3,6}}(?![\w-])"
    rf"|\b(?i:see|ticket|issue|story|bug|fix(?:es)?|closes?|per|jira):? (?!(?:{_STANDARD})-)"
    r"[A-Z][A-Z0-9]{1,9}-[0-9]{1,2}(?![\w-])"
)
_HOME = re.compile(
    r"(?:^|[\s\"'`(=:])/(?:home|Users|root|mnt|srv|var/folders)/"
    r"|(?<!\w)[A-Za-z]:[\\/]{1,2}(?i:users|documents and settings|home|projects?|work|repos?|code|dev)[\\/]"
    r"|(?<![\w\\])\\\\[\w-]+\\\w"
)
_PUBLIC = (
    r"(?:[\w-]+\.)*(?:example|github|gitlab|npmjs|pypi|docker|python|nodejs|rust-lang|crates|golang|debian|ubuntu|mozilla|w3|ghcr|quay"
    r"|readthedocs|docs)\.(?:com|org|net|io|dev|rs)"
)
_HOST = re.compile(
    r"\b(?!127\.|0\.0\.0\.0)\d{1,3}(?:\.\d{1,3}){3}\b|\b[\w.-]+@[\w-]+\.\w{2,}|\b[\w-]+(?:\.[\w-]+)*\.(?:internal|local|corp|lan|intra|home"
    r"|prod|staging)\b|\b(?!(?:(?:www|docs|registry|pkg)\.)?(?:example|github|gitlab|npmjs|pypi|docker|python|nodejs|rust-lang|crates|golang|debian|ubuntu|mozilla|w3|ghcr|quay)\.)"
    r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|org|net|io|dev|app|cloud|co|de|eu|fr|uk|cn|jp|ai|tech|site|xyz)\b(?![./]?\w*\()"
    # a URL of any host with a dot, except this machine and public documentation
    rf"|\b[a-z][a-z+]*://(?:[^@/\s]*@)?(?!127\.|0\.0\.0\.0|{_PUBLIC}\b)[a-z0-9-]+(?:\.[a-z0-9-]+)+"
    # alice@build01; host db-prod-3, prod-db-3; fe80::1
    r"|\b(?:ssh|scp|sftp|rsync|mosh)\b.*[\w-]@(?!v?\d|host|server)[a-z]|\b[a-z][\w.-]*@(?!v\d)[a-z]+[a-z-]*\d+\b"
    r"|\b(?:hosts?|servers?|machine|box|vm|bastion|runner)\s+[\"'`]?(?!ubuntu|windows|macos|debian|alpine|node|python|gpt|utf|http|ipv|is-|es)"
    r"[a-z]{2,}(?:-[a-z0-9]+)*(?:-\d+|0\d+)\b|\b[a-z0-9]+-(?:prod|production|staging|stage|qa|uat)-?\d+\b|\b(?:prod|staging|qa|uat)-[a-z]+-?\d+\b"
    r"|(?<![\w:.])(?!2001:0?db8:)(?:(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}|(?:fe[89ab][0-9a-f]|f[cd][0-9a-f]{2}|2[0-9a-f]{3}):[0-9a-f:]*:[0-9a-f:]*)(?![\w:])",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(?:[Aa]sk|[Cc]ontact|[Pp]ing|[Ee]mail|[Tt]alk to|[Ss]peak to)\s+[A-Z][a-z]+(?:\s+[A-Z][a-z]+)?"
    r"(?=[.,;:!?)]|$|\s+(?:for|about|before|if|whether|when|first|on|in|or|and)\b)"
)


def may_travel(text: str, project_names: Iterable[str]) -> bool:
    """Whether a note may leave its mission: it has no path, name or id of this project (`project_names`), no host or
    person, and is not gated."""
    refused = any(pattern.search(text) for pattern in (_IDS, _HOME, _HOST, _PERSON)) or gates.gated(text)
    return not refused and not names_project(text, project_names)


def own_names(project_names: Iterable[str]) -> frozenset[str]:
    """Lower-case paths and their suffixes, file and folder names of the project, without common ones, and its own
    names, prefixed with `PROJECT`."""
    found: set[str] = set()
    parts: set[str] = set()
    for name in project_names:
        if name.startswith(PROJECT):
            found |= _own_name(name.removeprefix(PROJECT).lower())
            continue
        path = name.lower().strip("/")
        found |= {path, path.rpartition("/")[2], path.rpartition(".")[0].replace("/", "."), *_ends(path)}
        parts |= {*path.partition(".")[0].split("/")}
        while "/" in path:
            path = path.rpartition("/")[0]
            found.add(path + "/")
    found |= {PART + part for part in parts if _is_rare(part)}
    return frozenset(name for name in found if name and not COMMON_FILES.fullmatch(name))


def _own_name(name: str) -> set[str]:
    """The project's name, unless it is a common word."""
    is_common = (
        len(name) < 4 or _word_frequency.special(stem(name)) < _word_frequency.ALL or COMMON_PARTS.fullmatch(name)
    )
    return set() if is_common else {PROJECT + name}


def _ends(path: str) -> list[str]:
    """The suffixes of a path with two names or more, as written inside a subfolder."""
    names = path.split("/")
    return ["/".join(names[start:]) for start in range(1, len(names) - 1)]


def _is_rare(part: str) -> bool:
    """Whether the bare name of a folder or file is specific to a project."""
    return len(part) > 2 and not COMMON_PARTS.fullmatch(part) and _word_frequency.special(stem(part)) >= RARE


def names_project(text: str, project_names: Iterable[str]) -> bool:
    """Whether a word of `text` is a path of the project, a distinctive file name of it, or its own name; or the text
    names one of its modules."""
    own = project_names if isinstance(project_names, frozenset) else own_names(project_names)
    low = text.lower()
    for word in re.findall(r"[^\s`\"'(),;<>|=]+", low):
        path = word.rstrip(".:!?").removeprefix("./")
        if "/" in path and "://" not in path:
            if path.strip("/") in own or path.partition("/")[0] + "/" in own:
                return True
        elif PROJECT + path in own or (path in own and re.search(r"[^a-z]", path)) or _is_spoken(path, own):
            return True
    return any(PART + name in own for found in _OF_PART.findall(low) for name in found if name)


def _is_spoken(word: str, own: frozenset[str]) -> bool:
    """Whether a word is the bare name of a folder or file without another meaning."""
    return PART + word in own and bool(_SPOKEN.fullmatch(word))
