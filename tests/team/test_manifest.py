"""Promises of harness/team/_manifest.py: one format, and no path that climbs or looks like another."""

from __future__ import annotations

import pytest

from harness.base.errors import BrokenFile
from harness.team._manifest import Manifest, ManifestEntry, path_fault, read_manifest, register_path

ENTRY = ManifestEntry(
    path="Space/a.md", owner="space/1", key="tenants/acme/spaces/s/a.md", version="v", digest="d", size=1, mode="write"
)
GOOD = Manifest(tenant="acme", entries={"Space/a.md": ENTRY})


def test_a_manifest_comes_back_as_it_was() -> None:
    """Whatever the order of its entries."""
    other = ENTRY.replace(path="A", key="tenants/acme/agents/a/A")
    one, two = (
        Manifest(tenant="acme", entries={each.path: each for each in some}) for some in ([ENTRY, other], [other, ENTRY])
    )
    assert one.to_bytes() == two.to_bytes()
    assert read_manifest(one.to_bytes(), "m") == one


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (ENTRY.replace(path="../a.md"), "has an empty name, or a `.`"),
        (ENTRY.replace(path="/a.md"), "has an empty name, or a `.`"),
        (ENTRY.replace(key="tenants/other/spaces/s/a.md"), "not a key of the tenant"),
        (ENTRY.replace(key="tenants/acme/../other/a.md"), "has an empty name, or a `.`"),
        (ENTRY.replace(size=2 << 30), "2,147,483,648 bytes"),
        (ENTRY.replace(size="1"), "size"),
    ],
)
def test_a_manifest_that_leads_elsewhere_is_refused_by_one_line(entry: ManifestEntry, words: str) -> None:
    """With the name of the file."""
    with pytest.raises(BrokenFile, match=words) as found:
        read_manifest(Manifest(tenant="acme", entries={"x": entry}).to_bytes(), "the manifest")
    assert str(found.value).startswith("the manifest: ") and "\n" not in str(found.value)


def test_other_versions_and_other_files_are_refused() -> None:
    """With what to do."""
    for data in (GOOD.to_bytes().replace(b'"version": 1', b'"version": 2', 1), b"[]", b'{"files": []}'):
        with pytest.raises(BrokenFile, match=r"not a manifest of version 1\. Delete it"):
            read_manifest(data, "m")
    with pytest.raises(BrokenFile):
        read_manifest(b'{"version": 1, "tenant": "acme"}', "m")


def test_paths_that_a_workspace_may_have() -> None:
    """Of any language; none that some disk or reader takes for another one."""
    for path in ("a.md", "Über uns/naïve.md", "документы/план.md", "日本/計画.md", "a b/c.d", "Q3 отчёт.md"):
        assert path_fault(path) == ""
    bad = ("", "a//b", "a/./b", "..", "a\\b", "a\n", "a ", " a", "a.", "e\u0301", "\udc80", "pl\u0430n", "x" * 256)
    assert [path for path in bad if not path_fault(path)] == []


def test_look_alikes() -> None:
    """Of files and of their folders; the same path again is none."""
    known = dict[str, str]()
    assert [register_path(known, path) for path in ("Space/a.md", "Space/a.md", "Space/b.md")] == ["", "", ""]
    assert register_path(known, "space/c.md") == "Space"
    assert register_path(known, "Space/A.md") == "Space/a.md"
    assert register_path(known, "Space/\uff41.md") == "Space/a.md"
