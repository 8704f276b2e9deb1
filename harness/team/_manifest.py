"""The manifest of a composed workspace: which file comes from which source, in which version. Equal states give equal bytes."""

from __future__ import annotations

import json
import os
import re
import unicodedata

from harness.base import encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.stores.store import encoded

VERSION = 1
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 700  # as encoded in a store: a key of S3, with its tenant and prefix, has at most 1,024 bytes
ALPHABETS = {"LATIN", "CYRILLIC", "GREEK"}  # they have letters that look alike


class ManifestEntry(Record):
    """A file. `path`: in the workspace; `owner`: kind and id of its source; `key`: in the store, joined by `/`; `version`: in
    the source, new for each write; `digest` and `size` (bytes): of the content; `mode`: what a turn may do; `generated`: whether
    the file is rendered from the database."""

    path: str
    owner: str
    key: str
    version: str
    digest: str
    size: int
    mode: str
    generated: bool = False


class Manifest(Record):
    """The files of one workspace, by path."""

    tenant: str
    entries: dict[str, ManifestEntry]

    def to_bytes(self) -> bytes:
        """One JSON object with one entry on each line, sorted by path."""
        rows = [json.dumps(one.asdict(), ensure_ascii=False) for _, one in sorted(self.entries.items())]
        head = f'{{"version": {VERSION}, "tenant": {json.dumps(self.tenant, ensure_ascii=False)}, "files": ['
        return (head + ",".join(f"\n{row}" for row in rows) + "\n]}\n").encode()


def read_manifest(data: bytes, where: str) -> Manifest:
    """The manifest in these bytes, which are at `where`. Raises BrokenFile, also for another version and for an invalid
    entry."""
    found = encoding.parse_json(data, where)
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise BrokenFile(
            where, f"it is not a manifest of version {VERSION}", remedy="Delete it: the next turn writes it."
        )
    try:
        rows = [schema.record(ManifestEntry, row, "a turn writes") for row in found["files"]]
        made = Manifest(tenant=found["tenant"], entries={one.path: one for one in rows})
    except (TypeError, KeyError, schema.InvalidField) as fault:
        raise BrokenFile(where, f"it is not a manifest: {fault}") from None
    if why := manifest_fault(made):
        raise BrokenFile(where, why)
    return made


def manifest_fault(manifest: Manifest) -> str:
    """The first fault: a path with `..`, two paths that look alike, a key outside the tenant, or a file that is too large; ""
    for none."""
    known, folders = dict[str, str](), {folder for path in manifest.entries for folder in parent_folders(path)}
    for one in manifest.entries.values():
        fault = path_fault(one.path) or path_fault(one.key) or size_fault(one.size)
        if one.key.split("/")[:2] != ["tenants", manifest.tenant]:
            fault = "it is not a key of the tenant"
        if one.path in folders:
            fault = "there are also files below it, and a workspace cannot have a file and a folder of one name"
        if alike := register_path(known, one.path):
            fault = f"its name looks like {alike}, and a workspace can have only one of them"
        if fault:
            return f"{one.key!r}: {fault}"
    return ""


def size_fault(size: int) -> str:
    """What is wrong with a file of this size; "" for nothing."""
    words = f"it has {size:,} bytes; a file of a workspace has at most {MAX_FILE_BYTES:,}"
    return words if size > MAX_FILE_BYTES else ""


def path_fault(path: str) -> str:
    """What is wrong with a path; "" for nothing."""
    names = path.split("/")
    if not all(names) or {".", ".."} & {*names}:
        return "the path has an empty name, or a `.` or `..`"
    if {".git", ".harness"} & {*map(str.casefold, names)}:
        return "the path contains .git or .harness"
    if "\\" in path or not path.isprintable() or any(len(os.fsencode(name)) > MAX_NAME_BYTES for name in names):
        return f"a name has a backslash, a control character, more than {MAX_NAME_BYTES} bytes, or is not UTF-8"
    if len(encoded(tuple(names))) > MAX_PATH_BYTES:
        return f"the path has more than {MAX_PATH_BYTES} bytes, and a letter outside ASCII takes six or more"
    if any(name[-1] in " ." or name[0] == " " for name in names) or not unicodedata.is_normalized("NFC", path):
        return "a name begins or ends with a space, ends with a dot, or is not in Unicode form NFC"
    for word in re.findall(r"[^\W\d_]+", path):
        if len({unicodedata.name(char, "").split(" ")[0] for char in word} & ALPHABETS) > 1:
            return "a word mixes alphabets whose letters look alike"
    return ""


def register_path(known: dict[str, str], path: str) -> str:
    """Add a path and its folders to `known`. Returns the known path or folder that a person or a disk could confuse with one of
    them; "" for none."""
    for part in (*parent_folders(path), path):
        if (same := known.setdefault(unicodedata.normalize("NFKC", part).casefold(), part)) != part:
            return same
    return ""


def parent_folders(path: str) -> list[str]:
    """The folders above a path, the outermost first."""
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(1, len(names))]
