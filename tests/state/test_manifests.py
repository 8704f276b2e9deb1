"""What prompts are made of comes back from the prompts, byte for byte, whenever a restoring is cut short."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harness.state import manifests, names, objects
from harness.state.layout import Layout
from tests.helpers import mission, put

PARTS = [
    [(b"# Role\n", "roles/a.md"), (b"\n", ""), (b"\xff\0 no text\n", "identity.md"), (b"\n", ""), (b"end\n", "")],
    [
        (b"# Role\n", "roles/a.md"),
        (b"\n", ""),
        (b"a\n\nb\n\n", "spec.md"),
        (b"\n\n", ""),
        (b"", "empty"),
        (b"\n", ""),
        (b"x", "x"),
    ],
]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission with two runs, each with a prompt."""
    made = mission(tmp_path)
    for number, parts in enumerate(PARTS):
        run = made.run(f"r-{number}")
        put(run.manifest, manifests.rendered(made, parts))
        put(run.prompt, b"".join(data for data, _ in parts))
    return made


def replayed(layout: Layout, run_id: str) -> bytes:
    """The prompt of a run, from its manifest."""
    rows = json.loads(Path(layout.run(run_id).manifest).read_text())
    return b"".join(row["text"].encode() if "text" in row else objects.get(layout, row["object"]) for row in rows)


def is_replayed(layout: Layout) -> bool:
    """Whether each prompt comes out of its manifest."""
    return all(replayed(layout, f"r-{n}") == Path(layout.run(f"r-{n}").prompt).read_bytes() for n in range(len(PARTS)))


def without_lengths(layout: Layout) -> None:
    """The manifests as older versions wrote them."""
    for number in range(len(PARTS)):
        path = Path(layout.run(f"r-{number}").manifest)
        rows = [{key: value for key, value in row.items() if key != "bytes"} for row in json.loads(path.read_text())]
        path.write_text(json.dumps(rows))


def test_a_manifest_names_each_part_with_its_length(layout: Layout) -> None:
    """Concatenated, they are the prompt."""
    rows = json.loads(Path(layout.run("r-0").manifest).read_text())
    assert [row.get("bytes") for row in rows] == [7, None, 11, None, None]
    assert is_replayed(layout)
    assert manifests.lost(layout) == []


@pytest.mark.parametrize("older", [False, True], ids=["with lengths", "without"])
def test_all_objects_are_restored_from_the_prompts(layout: Layout, older: bool) -> None:
    """As after `rm -rf .harness/objects`, and also those of manifests that lack the lengths."""
    if older:
        without_lengths(layout)
    shutil.rmtree(layout.path(names.OBJECTS))
    assert len(manifests.lost(layout)) == 5
    assert manifests.restore(layout) == (5, [])
    assert is_replayed(layout)
    assert manifests.lost(layout) == []
    assert objects.is_whole(layout)


def test_one_object_that_was_changed_or_lost_is_restored(layout: Layout) -> None:
    """The others are left alone."""
    role, spec = (objects.put(layout, PARTS[1][number][0]) for number in (0, 2))
    os.unlink(objects.path_of(layout, role))
    os.chmod(objects.path_of(layout, spec), 0o600)
    put(objects.path_of(layout, spec), b"forged")
    assert manifests.lost(layout) == sorted([role, spec])
    assert manifests.restore(layout) == (2, [])
    assert is_replayed(layout)


def test_what_no_prompt_holds_is_named(layout: Layout) -> None:
    """A prompt that was changed gives nothing wrong: every piece has its digest."""
    shutil.rmtree(layout.path(names.OBJECTS))
    Path(layout.run("r-1").prompt).write_bytes(b"else")
    count, gone = manifests.restore(layout)
    assert (count, len(gone)) == (3, 2)
    assert manifests.lost(layout) == gone


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "[5]", '[{"object": 5}]', '[{"object": "x", "bytes": -9}]'])
def test_a_manifest_that_cannot_be_read_holds_nothing_up(layout: Layout, text: str) -> None:
    """The digest of its run says that it was changed."""
    Path(layout.run("r-0").manifest).write_text(text)
    shutil.rmtree(layout.path(names.OBJECTS))
    manifests.restore(layout)
    assert replayed(layout, "r-1") == Path(layout.run("r-1").prompt).read_bytes()


def test_a_restoring_that_was_cut_short_anywhere_is_completed(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each object: the mark is there until all are, so that the next start begins again."""
    kept = objects.put
    for most in range(5):
        shutil.rmtree(layout.path(names.OBJECTS))
        left = iter(range(most))

        def cut(layout: Layout, data: bytes) -> str:
            if next(left, None) is None:  # noqa: B023 - called within this turn of the loop
                raise KeyboardInterrupt
            return kept(layout, data)

        with monkeypatch.context() as patch:
            patch.setattr(objects, "put", cut)
            with pytest.raises(KeyboardInterrupt):
                manifests.restore(layout)
        assert not objects.is_whole(layout)
        manifests.restore(layout)
        assert objects.is_whole(layout)
        assert is_replayed(layout)
