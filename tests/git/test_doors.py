"""No git call of ours runs a program that an agent configured; a person's own filter works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import NeedsPerson
from harness.git import dotgit, landing, merges, refs, repository, settings
from harness.git.checkouts import worktrees
from tests.crash import sampled
from tests.git_repository import Repository, new


class Place:
    """A project, recorded at init, with a kept tree; `canary` is made by every program that an agent sets up."""

    def __init__(self, repo: Repository, base: Path) -> None:
        self.repo, self.project, self.base = repo, repo.project, base
        self.canary = base / "canary"
        self.program = base / "program"
        self.program.write_text(f"#!/bin/sh\necho ran >> '{self.canary}'\ncat\n")
        self.program.chmod(0o755)
        self.recorded = settings.record(self.project)
        self.tree, self.private = str(base / "tree"), str(base / "private")
        self.use()

    def use(self) -> None:
        """As the start of a process does."""
        settings.use(self.project, self.recorded, self.private)

    def everything(self) -> None:
        """Each call that runs and landings make, in the project and in the tree, with files that changed and are new."""
        head = self.repo.head()
        worktrees.ensure(self.project, self.tree, head)
        Path(self.tree, "a").write_text("agent\n")
        Path(self.tree, "c").write_text("agent\n2\n3\n4\n5\n")
        Path(self.tree, "made").write_text("agent\n")
        Path(self.tree, ".gitignore").write_text("made\n")
        assert worktrees.ignored_since(self.tree, []) == ['ignored by .gitignore:1 "made": made']
        Path(self.tree, ".gitignore").unlink()
        for where, index in ((self.tree, worktrees.index(self.tree)), (self.project, str(self.base / "index"))):
            state = repository.state(where)
            done = repository.working_tree(
                where, index=index, parent=head, leave=state.untracked if where == self.project else ()
            )
            repository.patch(where, head)
            repository.changed(where, head, done.tree)
            repository.diff_stat(where, head, done.tree)
        work = repository.working_tree(self.tree, index=worktrees.index(self.tree), parent=head, leave=()).tree
        made = repository.commit_tree(self.project, work, [head], "work\n")
        refs.set_one(self.project, "refs/harness/m/tip", made)
        repository.patch_between(self.project, head, made)
        repository.messages_between(self.project, head, made)
        repository.log_lines(self.project, head, made)
        refs.is_ancestor(self.project, head, made)
        repository.show(self.project, made, "a")
        repository.default_branch(self.project)
        repository.not_in_index(self.project)
        self.repo.write("b", "a person's\n")
        self.repo.write("c", "1\n2\n3\n4\na person's\n")
        taken = merges.take_edits(self.project, "main")
        assert taken.commit
        merged = merges.merge(self.project, made, taken.commit, "merge\n")
        assert landing.land(self.project, "main", merged.commit) == ""
        assert (self.repo.folder / "a").read_text() == "agent\n"
        assert (self.repo.folder / "b").read_text() == "a person's\n"
        assert (self.repo.folder / "c").read_text() == "agent\n2\n3\n4\na person's\n"
        worktrees.ensure(self.project, self.tree, merged.commit)
        worktrees.remove(self.project, self.tree)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with the files a and b."""
    made = new(tmp_path, monkeypatch)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    made.save(a="1\n", b="2\n", c="1\n2\n3\n4\n5\n")
    return made


@pytest.fixture
def place(repo: Repository, tmp_path: Path) -> Place:
    """The project, recorded."""
    return Place(repo, tmp_path)


def _config(*pairs: str, scope: str = "--local", attributes: str = "") -> Callable[[Place], None]:
    """The agent configures these keys, `!` being its program, and writes attributes for them."""

    def act(place: Place) -> None:
        _attribute(place, attributes)
        for pair in pairs:
            key, _, value = pair.partition("=")
            place.repo.run("config", scope, key, value.replace("!", str(place.program)))

    return act


def _attribute(place: Place, attributes: str) -> None:
    """In the repository, where an agent may write them too, and in its git folder."""
    if attributes:
        place.repo.save(**{".gitattributes": attributes})
        place.repo.write(".git/info/attributes", attributes)


def _hooks(place: Place) -> None:
    for name in (
        "post-checkout",
        "reference-transaction",
        "pre-commit",
        "post-index-change",
        "post-commit",
        "post-merge",
    ):
        path = place.repo.folder / ".git/hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(place.program.read_text())
        path.chmod(0o755)


def _hooks_path(place: Place) -> None:
    _hooks(place)
    _config(f"core.hooksPath={place.repo.folder}/.git/hooks")(place)


def _attributes(place: Place) -> None:
    (place.base / "attributes").write_text("* filter=evil\n")
    _config("filter.evil.clean=!", f"core.attributesFile={place.base}/attributes")(place)


def _include(place: Place) -> None:
    (place.base / "more").write_text(f'[filter "evil"]\n\tclean = {place.program}\n')
    _config(f"include.path={place.base}/more", attributes="* filter=evil\n")(place)


def _worktree_config(place: Place) -> None:
    _attribute(place, "* filter=evil\n")
    place.repo.run("config", "extensions.worktreeConfig", "true")
    place.repo.run("config", "--worktree", "filter.evil.clean", str(place.program))


CHEATS: dict[str, Callable[[Place], None]] = {
    "clean filter": _config("filter.evil.clean=!", attributes="* filter=evil\n"),
    "smudge filter": _config("filter.evil.smudge=!", attributes="* filter=evil\n"),
    "process filter": _config("filter.evil.process=!", "filter.evil.required=true", attributes="* filter=evil\n"),
    "global filter": _config("filter.evil.clean=!", scope="--global", attributes="* filter=evil\n"),
    "included filter": _include,
    "filter of the worktree's configuration": _worktree_config,
    "textconv": _config("diff.evil.textconv=!", attributes="* diff=evil\n"),
    "external diff": _config("diff.external=!"),
    "diff command": _config("diff.evil.command=!", attributes="* diff=evil\n"),
    "merge driver": _config("merge.evil.driver=! %A", "merge.default=evil", attributes="* merge=evil\n"),
    "fsmonitor": _config("core.fsmonitor=!"),
    "hooks": _hooks,
    "hooksPath": _hooks_path,
    "alias": _config("alias.status=!!", "alias.rev-parse=!!"),
    "pager": _config("core.pager=!", "pager.log=!", "pager.diff=!"),
    "editor and signing": _config("gpg.program=!", "commit.gpgSign=true", "core.editor=!", "log.showSignature=true"),
    "lazy fetch": _config(
        "extensions.partialClone=evil",
        "core.repositoryFormatVersion=1",
        "remote.evil.promisor=true",
        "remote.evil.url=ext::!",
        "protocol.ext.allow=always",
    ),
    "core.worktree": lambda place: _config(f"core.worktree={place.base}")(place),
    "attributes of the user": _attributes,
}


ALONE = (
    "process filter",
    "filter of the worktree's configuration",
    "lazy fetch",
    "core.worktree",
)  # git fails beside others
FILTERS = ("clean filter", "smudge filter", "global filter", "included filter", "attributes of the user")
FIRST = "merge driver"  # its attributes give way to those of the next one; it is the default, too
OTHERS = (FIRST, *(cheat for cheat in CHEATS if cheat not in (*ALONE, *FILTERS, FIRST)))
ATTEMPTS = sampled([*((cheat,) for cheat in CHEATS), FILTERS, OTHERS], lambda row: len(row) > 1 or row[0] in ALONE)


@pytest.mark.parametrize("cheats", ATTEMPTS, ids=lambda cheats: f"{len(cheats)} from {cheats[0]}")
def test_what_an_agent_configures_is_never_run(place: Place, cheats: tuple[str, ...]) -> None:
    """Nor does it lead our calls elsewhere: everything has its result, and no canary was made."""
    for cheat in cheats:
        CHEATS[cheat](place)
    place.canary.unlink(missing_ok=True)  # made by the agent's own git
    place.use()
    place.everything()
    assert not place.canary.exists()


@pytest.mark.parametrize("cheat", ["clean filter", "smudge filter", "textconv", "fsmonitor", "hooks", "alias"])
def test_the_cheats_of_these_tests_work_on_plain_git(place: Place, cheat: str) -> None:
    """Else the canary would prove nothing."""
    CHEATS[cheat](place)
    place.repo.write("a", "changed\n")
    if cheat == "alias":
        place.repo.run("config", "alias.xx", f"!{place.program} </dev/null")
        place.repo.run("xx")
    for words in (("status",), ("diff",), ("add", "a"), ("commit", "-q", "-m", "x"), ("checkout", "-q", "HEAD^")):
        place.repo.run(*words)
    assert place.canary.exists()


def test_a_filter_in_a_trees_own_attributes_needs_a_program_that_was_recorded(place: Place) -> None:
    """An agent may commit .gitattributes; they name drivers, and drivers are a person's."""
    place.repo.run("config", "filter.evil.clean", str(place.program))
    worktrees.ensure(place.project, place.tree, place.repo.head())
    Path(place.tree, ".gitattributes").write_text("* filter=evil\n")
    repository.working_tree(place.tree, index=worktrees.index(place.tree), parent=place.repo.head(), leave=())
    assert not place.canary.exists()


def test_a_replaced_object_is_not_believed(place: Place) -> None:
    """`git replace` would show us another file under the same commit."""
    head = place.repo.head()
    (place.base / "other").write_text("forged\n")
    forged = place.repo.run("hash-object", "-w", str(place.base / "other"))
    place.repo.run("replace", place.repo.run("rev-parse", "HEAD:a"), forged)
    assert place.repo.run("show", "HEAD:a") == "forged"
    assert repository.show(place.project, head, "a") == b"1\n"
    worktrees.ensure(place.project, place.tree, head)
    assert Path(place.tree, "a").read_text() == "1\n"


@pytest.mark.parametrize("where", ["project", "tree"])
def test_a_commondir_that_leads_elsewhere_is_named(place: Place, where: str) -> None:
    """Git finds its refs by that file: the call is refused, and says what to remove. A tree's is written again."""
    worktrees.ensure(place.project, place.tree, place.repo.head())
    folder = place.project if where == "project" else place.tree
    Path(dotgit.folders(folder)[0], "commondir").write_text(str(place.base) + "\n")
    with pytest.raises(NeedsPerson, match=r"commondir was changed.*Remove or restore it"):
        repository.position(folder)
    if where == "tree":
        worktrees.ensure(place.project, place.tree, place.repo.head())
        assert repository.position(place.tree).head == place.repo.head()


def test_objects_borrowed_from_elsewhere_are_named(place: Place) -> None:
    """Commits would be lost with the folder that an agent names."""
    place.repo.write(".git/objects/info/alternates", "/tmp/objects\n")
    with pytest.raises(NeedsPerson, match="alternates was changed"):
        place.use()


# a person's own filter


def _filter(repo: Repository, base: Path) -> Path:
    """A filter whose program has a space in its path: the repository has an encoded form, the folder the content."""
    program = base / "filter program"
    program.write_text(
        "#!/bin/sh\nif [ \"$1\" = clean ]; then printf 'pointer '; base64 -w 0; else cut -c 9- | base64 -d; fi\n"
    )
    program.chmod(0o755)
    repo.run("config", "filter.big.clean", f"'{program}' clean")
    repo.run("config", "filter.big.smudge", f"'{program}' smudge")
    repo.run("config", "filter.big.required", "true")
    repo.save(**{".gitattributes": "*.big filter=big\n", "x.big": "one\n"})
    return program


def test_a_filter_that_stood_at_init_works(repo: Repository, tmp_path: Path) -> None:
    """Pointers in commits, contents in the tree and in the person's folder, nothing dirty."""
    _filter(repo, tmp_path)
    place = Place(repo, tmp_path)
    place.repo.run("config", "filter.evil.clean", str(place.program))
    assert repo.run("show", "HEAD:x.big").startswith("pointer ")
    assert repository.dirty(place.project) == []
    worktrees.ensure(place.project, place.tree, repo.head())
    assert Path(place.tree, "x.big").read_text() == "one\n"
    Path(place.tree, "x.big").write_text("two\n")
    work = repository.working_tree(place.tree, index=worktrees.index(place.tree), parent=repo.head(), leave=()).tree
    made = repository.commit_tree(place.project, work, [repo.head()], "work\n")
    assert repo.run("show", f"{made}:x.big").startswith("pointer ")
    assert landing.land(place.project, "main", made) == ""
    assert ((repo.folder / "x.big").read_text(), repo.run("status", "--porcelain")) == ("two\n", "")
    repo.write("x.big", "three\n")
    assert repo.run("show", f"{merges.take_edits(place.project, 'main').commit}:x.big").startswith("pointer ")
    assert not place.canary.exists()


def test_a_project_that_is_a_linked_worktree_is_treated_alike(repo: Repository, tmp_path: Path) -> None:
    """Its common folder lies elsewhere."""
    repo.run("worktree", "add", "-q", "-b", "side", "../side")
    side = Repository(repo.folder.parent / "side")
    place = Place(side, tmp_path)
    CHEATS["clean filter"](Place(repo, tmp_path))
    worktrees.ensure(place.project, place.tree, side.head())
    Path(place.tree, "a").write_text("x")
    work = repository.working_tree(place.tree, index=worktrees.index(place.tree), parent=side.head(), leave=()).tree
    made = repository.commit_tree(place.project, work, [side.head()], "work\n")
    assert landing.land(place.project, "side", made) == ""
    assert ((side.folder / "a").read_text(), side.run("rev-parse", "side")) == ("x", made)
    assert not place.canary.exists()
