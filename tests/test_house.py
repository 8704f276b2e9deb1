"""The house rules, as tests: shape of the code, direction of the imports, one writer, and docs that are true."""

from __future__ import annotations

import ast
import functools
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.base import errors
from harness.decision import rules
from harness.mission import config, replies, roles, runs
from harness.mission.features import STATUSES
from harness.state import layout, names, raw
from tests import architecture_map

HOME = Path(__file__).resolve().parent.parent
MODULES = sorted([*(HOME / "harness").rglob("*.py"), *(HOME / "roles").glob("*.py")])
LIMITS = {  # each changes only where an issue of the project says so
    "lines of a function": 50,
    "median lines of a function": 10,
    "lines of a file": 400,
    "public modules of a folder": 10,
    "imports between packages": 120,
    "bytes of the page of architecture": 20_000,
}
PACKAGES = (  # lowest first: an import goes down this list only
    "base",
    "state",
    "process",
    "stores",
    "git",
    "filesystem",
    "memory",
    "mission",
    "workspace",
    "agents",
    "workplace",
    "proof",
    "decision",
    "run",
    "replay",
    "commands",
    "report",
    "unattended",
    "builtin",
    "team",
    "cli",
)
VOCABULARIES = ("base", "state", "mission")  # of which every module is for others
WRITERS = {"state.files", "state.journal"}
OWN_FILES = {
    "filesystem._root",  # a tree that is no state: everything by descriptors beneath its root
    "filesystem._replace",
    "filesystem._python_grep",  # a program that reads the files it is given
    "builtin.mcp._stdio",  # the standard input of a server
    "filesystem._spool",  # the output of a command, in a file without a name
    *(f"filesystem.{name}" for name in ("_relay", "_remote_server", "_remote_shell")),  # pipes
    "filesystem._control_groups",  # files of the kernel
    *(f"run.machines.{name}" for name in ("_pump", "_worker", "_pipe", "_dask")),  # pipes
    *(f"process.{name}" for name in ("spawn", "tree", "_guardian", "supervise", "temporary", "network")),
    "base.clock",  # beside a recorded clock, outside any mission
    "git.checkouts.clones",  # a copy of a partial clone's objects
    "git.dotgit",
    "workplace.home_layer",
    "git.repository",
    "git.checkouts.placement",
    "git.settings",
}
ON_DISK = {  # who calls `files` besides the store: for what is not the mission's state, or below its names
    **dict.fromkeys(
        ("agents._configs", "agents.program", "agents._playbook", "agents._recording"),
        "files of agents",
    ),
    **dict.fromkeys(
        (
            "cli._run_view",
            "cli._tables",
            "commands.setup.config_check",
            "commands.agent_requests",
            "commands.verify",
            "builtin.images",
            "cli._ask",
            "cli._turn_changes",
        ),
        "a file that a person names",
    ),
    **dict.fromkeys(("commands.setup.agent_probe", "commands.setup.confinement_probe"), "folders made to try things"),
    **dict.fromkeys(
        (
            *(
                "git.checkouts._sparse",
                "git.checkouts.clones",
                "git.checkouts.submodules",
                "git.dotgit",
                "git.landing",
                "git.merges",
                "git.new_secrets",
                "git.checkouts.placement",
            ),
            *("git.repository", "git.settings", "git.checkouts.worktrees"),
        ),
        "git's folders",
    ),
    **dict.fromkeys(
        ("workplace.confine", "workplace.home_layer", "workplace._home_list", "workplace.inbox"),
        "folders of a run",
    ),
    **dict.fromkeys(
        (
            "mission.lease",
            "workplace.mission_lock",
            "workplace.recovery.unsettled_runs",
            "cli.quick",
            "mission.runs",
        ),
        "locks, and who holds them",
    ),
    **dict.fromkeys(("run.reconcile", "run.recover", "commands.setup.doctor"), "restores what others overwrote"),
    **dict.fromkeys(("memory.archive", "memory.backlog", "run.settle.curator"), "streams of what may be large"),
    **dict.fromkeys(
        ("proof.check_runs", "proof.services", "mission.transcript", "mission.receipts"),
        "what a run appends to as it goes",
    ),
    **dict.fromkeys(("stores.disk", "stores._sqlite"), "the files of a store"),
    "team.database": "its migrations, which come with the program",
    "run._survey": "the files of a project",
    "run._inputs": "identities, which missions share",
    **dict.fromkeys(("mission.mission", "mission.roles"), "SPEC.md and roles, which people write"),
    **dict.fromkeys(("run.settle.specifier", "commands.setup.specification"), "SPEC.md, which a person asks for"),
    **dict.fromkeys(
        ("unattended.schedules", "unattended.schedule_log", "unattended.start"),
        "what belongs to the machine that starts the mission",
    ),
    **dict.fromkeys(("unattended._crontab", "unattended.start"), "locks, and who holds them"),
    "agents.logins": "files of other programs",
    **dict.fromkeys(("workspace._reader", "workspace.snapshot"), "skills and subagents outside the project"),
    "commands.setup.removal": "what a mission left outside its folder",
    "replay.upkeep.export": "copies for another machine",
    "replay.upkeep.restoration": "what a git that was killed left",
    **dict.fromkeys(
        ("replay.resends.state_at_run", "replay._staging", "replay.resends.prompt_swap"),
        "the state of then, in a temporary folder",
    ),
    **dict.fromkeys(("replay.resends.resend", "replay.resends.replays"), "replays, which are no state"),
    **dict.fromkeys(("replay.upkeep.deletion", "replay.upkeep.pruning"), "files of runs, which go"),
    **dict.fromkeys(("replay._replica", "replay.playback"), "a mission made again, which is thrown away"),
    **dict.fromkeys(("replay.search", "commands.curations"), "identities, which missions share"),
    "builtin.tools._memory_tools": "identities, which missions share",
    **dict.fromkeys(("builtin.loop.turns", "builtin.conversation"), "what a run appends to as it goes"),
    **dict.fromkeys(
        ("builtin.turn_replay", "builtin.subagents.runner", "mission.tasks"),
        "folders and records of subagents",
    ),
    **dict.fromkeys(
        ("builtin.sessions._places", "builtin.sessions._sandboxes"),
        "conversations, which are no mission's",
    ),
    **dict.fromkeys(
        ("team._runtime", "team._reconcile", "team._outcomes"), "the workspace of a turn, and what is kept beside it"
    ),
    "workspace.disk_reader": "a workspace without git",
    "workspace.grants": "what a person has accepted, which no repository may say",
    "agents.builtin": "the line of a fault in a person's file",
    "builtin.sessions.folder": "a person's rules that are not committed",
    "replay.query": "streams of what may be large",
    "cli.help": "the header of run.sh",
    "report.glance": "streams that grow, and who holds the locks",
    "report.page_file": "a page where a person wants it",
    "cli._log": "streams that grow",
    "workplace.workplace": "trees",
    **dict.fromkeys(
        ("run.machines._site", "run.machines._travel"),
        "a run on another machine: its folders there, and what travels",
    ),
    "run.notice.hooks": "the standard input of a person's program",
    "run._archiving": "the whole state of a mission, moved",
    "run.starting": "a folder that is no mission yet",
}
PURE = ("decode", "digest", "dump_json", "parse_json")
ARCHITECTURE = HOME / "docs/architecture.md"
TALKS = "assistant"  # the role of conversations, which is no run's; every wire has the word for whoever answers
AGENT_NAMES = ("claude", "codex", "gemini", "opencode")


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Every module of ours, parsed: read by these tests alone, since it takes 2 s and 150 MB."""
    return {path: ast.parse(path.read_text()) for path in MODULES}


@pytest.fixture(scope="module", autouse=True)
def _forgotten() -> Iterator[None]:
    """The process of these tests goes on to others, each of whose forks would copy these pages."""
    yield
    trees.cache_clear()


def dotted(path: Path) -> str:
    """A module's name as it is imported: `harness.base.errors`, `roles.worker`; a package goes by its own."""
    return ".".join(path.relative_to(HOME).with_suffix("").parts).removesuffix(".__init__")


def package(name: str) -> str:
    """The package of a module: `base` for `harness.base.errors`, none for `harness.__main__`."""
    parts = name.split(".")
    return parts[1] if parts[0] == "harness" and len(parts) > 1 and parts[1] in PACKAGES else parts[0]


def short(path: Path) -> str:
    """A module below its package, as the sets above name it."""
    return dotted(path).removeprefix("harness.")


NAMES = {dotted(path): path for path in MODULES}


def functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    """Every function and method of the project."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield path, node


def modules_of(tree: ast.AST, names: dict[str, Path], *, types: bool = False) -> Iterator[str]:
    """Modules of ours that a module imports anywhere; those imported for type checkers only, where `types` says so."""
    checking = [] if types else [node for node in ast.walk(tree) if is_checking(node)]
    hidden = {id(inner) for node in checking for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in hidden and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in inner if name in names)
            yield from [node.module] if node.module in names and any(name not in names for name in inner) else []


def is_checking(node: ast.AST) -> bool:
    """Whether it is an `if TYPE_CHECKING:` block."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_no_function_is_longer_than_fifty_lines_and_half_are_at_most_ten() -> None:
    """Short, well-named functions are what the good codebases of this field share."""
    lengths = {f"{path.name}:{node.name}": (node.end_lineno or 0) - node.lineno + 1 for path, node in functions()}
    assert {name: length for name, length in lengths.items() if length > LIMITS["lines of a function"]} == {}
    assert statistics.median(lengths.values()) <= LIMITS["median lines of a function"]


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    """One noun or verb per file."""
    long = {
        path.name: count
        for path in MODULES
        if (count := len(path.read_text().split("\n")) - 1) > LIMITS["lines of a file"]
    }
    assert long == {}


@functools.cache
def arrows() -> set[tuple[str, str]]:
    """Which package imports from which, function-level imports and `__init__` counted."""
    found = set()
    for path, tree in trees().items():
        for name in modules_of(tree, NAMES):
            found.add((package(dotted(path)), package(name)))
    return {(source, target) for source, target in found if source != target}


def test_every_module_stands_in_a_package_of_the_list() -> None:
    """A new module first gets a package."""
    assert {path.parent.name for path in (HOME / "harness").glob("*/__init__.py")} == set(PACKAGES)
    assert {path.name for path in (HOME / "harness").glob("*.py")} == {"__init__.py", "__main__.py"}


def ruled() -> list[str]:
    """The modules that the rules below are about."""
    found = [name for name, path in NAMES.items() if path.stem not in ("__init__", "__main__")]
    return [name for name in found if package(name) != "roles"]


def folder_of(name: str) -> str:
    """The folder of a module, by its dotted name."""
    return name.rpartition(".")[0]


@functools.cache
def importers() -> dict[str, set[str]]:
    """{module: folders that import it}, the scripts of roles among them."""
    found: dict[str, set[str]] = {name: set() for name in NAMES}
    for path, tree in trees().items():
        for name in modules_of(tree, NAMES, types=True):
            found[name].add(folder_of(dotted(path)))
    return found


def test_a_module_of_its_folder_alone_begins_with_an_underscore_and_no_other_package_imports_it() -> None:
    """So the file names say what a package, or a folder of it, offers; those of the vocabularies are for all."""
    foreign = {name: importers()[name] - {folder_of(name)} for name in ruled()}
    hidden = {name for name in foreign if name.rpartition(".")[2].startswith("_")}
    users = {name: {package(one) for one in foreign[name]} - {package(name)} for name in hidden}
    assert {name: found for name, found in users.items() if found} == {}
    assert [name for name in foreign if not foreign[name] | {*VOCABULARIES} & {package(name)} | hidden & {name}] == []


def test_a_folder_has_at_most_ten_modules_for_others() -> None:
    """What a package offers fits into one look; the packages of words are longer lists."""
    public = [name for name in ruled() if not name.rpartition(".")[2].startswith("_")]
    sizes = Counter(name.rpartition(".")[0] for name in public if package(name) not in VOCABULARIES)
    more = {folder.removeprefix("harness."): size for folder, size in sizes.items()}
    assert {folder: size for folder, size in more.items() if size > LIMITS["public modules of a folder"]} == {}


def classes() -> Iterator[tuple[str, str]]:
    """(module, name) of every public class that the rules are about."""
    for name in ruled():
        for node in trees()[NAMES[name]].body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield name, node.name


def test_no_two_public_classes_share_a_name() -> None:
    """A reader who meets a name knows which one it is."""
    found = Counter(name for _, name in classes())
    assert {name: number for name, number in found.items() if number > 1} == {}


VAGUE = "given said again then past asks near seen told held made done kept taken found asked fired shown joined merged"


def test_modules_and_classes_are_named_by_nouns() -> None:
    """No adverb and no bare participle, which say nothing where they are imported."""
    modules = [name for name in ruled() if name.rpartition(".")[2].strip("_") in VAGUE.split()]
    assert modules + [name for _, name in classes() if name.lower() in VAGUE.split()] == []


def test_state_is_reached_through_the_store_alone() -> None:
    """`files` is for the store, and for the places in the list, each with what else than state it is for."""
    found = set()
    for path, tree in trees().items():
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        used = [one.attr for one in calls if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "files"]
        if set(used) - set(PURE) and not short(path).startswith("state."):
            found.add(short(path))
    assert found == set(ON_DISK)


def test_imports_go_down_the_list_of_packages_only() -> None:
    """Also those inside functions; only the command line is above a role's script."""
    order = [*PACKAGES, "roles", "harness"]
    assert {(source, target) for source, target in arrows() if order.index(target) > order.index(source)} == set()
    assert not {target for source, target in arrows() if source == "roles"} & {"cli", "commands"}
    assert len([pair for pair in arrows() if set(pair) <= set(PACKAGES)]) <= LIMITS["imports between packages"]


def test_a_package_says_in_one_sentence_what_it_promises() -> None:
    """And nothing else: its `__init__` imports nothing, so that an import loads only the module itself."""
    for name in PACKAGES:
        tree = trees()[HOME / "harness" / name / "__init__.py"]
        words = ast.get_docstring(tree) or ""
        assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", words), name
        assert len(tree.body) == 1 or name == "run", f"{name}: only harness.run has a name of its own, for role scripts"


def test_no_import_goes_round_in_a_circle() -> None:
    """Repeatedly removing the modules whose imports, those of types included, are all removed leaves none."""
    needs = {name: set(modules_of(trees()[path], NAMES, types=True)) - {name} for name, path in NAMES.items()}
    while free := [name for name, others in needs.items() if not others & needs.keys()]:
        for name in free:
            del needs[name]
    assert needs == {}


@functools.cache
def methods() -> dict[str, dict[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """{class: its methods by name, those of its bases included}; properties are not."""
    found = {node.name: node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}

    def of(node: ast.ClassDef) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
        all_of = {name: one for base in bases(node) & found.keys() for name, one in of(found[base]).items()}
        own = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        return all_of | {
            one.name: one for one in own if not any(ast.unparse(by) == "property" for by in one.decorator_list)
        }

    return {name: of(node) for name, node in found.items()}


def bases(node: ast.ClassDef) -> set[str]:
    """The names of a class's bases, without modules and type parameters."""
    return {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}


@functools.cache
def protocols() -> set[str]:
    """The names of the Protocols of the project."""
    nodes = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {node.name for node in nodes if "Protocol" in bases(node)}


def promised_elsewhere(node: ast.ClassDef, name: str) -> bool:
    """Whether a base of the class, or a Protocol that it implements, has this method, and so its docstring."""
    kinds = {one for one in protocols() - {node.name} if len(methods()[one]) > 1}
    able = {one for one in kinds if {*methods()[one]} <= {*methods()[node.name]}}
    return any(name in methods().get(one, {}) for one in able | bases(node))


def silent(body: list[ast.stmt], name: str, of: ast.ClassDef | None = None) -> Iterator[str]:
    """The functions and classes for use by other modules, and their methods, that have no docstring and need one."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node) and not (of and promised_elsewhere(of, node.name)):
                yield f"{name}:{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from silent(node.body, name, node)


def test_every_module_and_every_public_name_says_what_it_promises() -> None:
    """A docstring each; the method of a Protocol, or of a base, says it once, there."""
    assert [path.name for path, tree in trees().items() if not ast.get_docstring(tree)] == []
    assert [one for path, tree in trees().items() for one in silent(tree.body, path.name)] == []


def test_no_docstring_says_nothing() -> None:
    """None that only points to another one, and none that three functions have."""
    nodes = [node for tree in trees().values() for node in ast.walk(tree)]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    words = Counter(ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds))
    found = {text for text, count in words.items() if count > 2 or re.fullmatch(r"See [\w.]+\.", text)}
    assert found - {""} == set()


def test_everything_is_typed() -> None:
    """Every parameter and every result."""
    bare = [
        f"{path.name}:{node.name}"
        for path, node in functions()
        if node.returns is None
        or any(arg.annotation is None for arg in node.args.args if arg.arg not in ("self", "cls"))
    ]
    assert bare == []


def mentions(node: ast.AST, names: set[str]) -> bool:
    """Whether one of these names occurs in it."""
    return any(isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(node))


def loose(tree: ast.Module) -> set[str]:
    """The names that a module gives to a type with `Any` in it; `Json` is the one that may be."""
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and mentions(node.value, {"Any"})]
    return {one.id for node in named for one in node.targets if isinstance(one, ast.Name)} - {"Json"}


def test_no_field_is_any_but_a_value_of_json() -> None:
    """Into `Any` no type checker looks, and who is meant by it is no import that counts."""
    known = {dotted(path): loose(tree) for path, tree in trees().items()}
    found = []
    for path, tree in trees().items():
        taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in known]
        names = {one.name for node in taken for one in node.names if one.name in known[node.module or ""]}
        for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            fields = [node.annotation for node in owner.body if isinstance(node, ast.AnnAssign)]
            bare = [field for field in fields if mentions(field, {"Any", *names, *known[dotted(path)]})]
            found += [f"{short(path)}: {owner.name} has a field of {ast.unparse(field)}" for field in bare]
    assert found == []


def test_every_module_has_a_test_file_of_its_own() -> None:
    """tests/ mirrors harness/ and roles/."""
    missing = []
    for path in MODULES:
        parts = path.relative_to(HOME).parts
        below = parts[1:-1] if parts[0] == "harness" else ("roles",)
        if path.stem != "__init__":
            wanted = HOME.joinpath("tests", *below, f"test_{path.stem.strip('_')}.py")
            missing += [] if wanted.exists() else [str(wanted.relative_to(HOME))]
    assert missing == []


WRITING = re.compile(
    r"\bos\.(write|pwrite|replace|rename|unlink|remove|mkdir|makedirs|rmdir|truncate|ftruncate|symlink|link)\("
    r"|\bopen\([^)]*[\"'][wax]b?\+?[\"']|\.write_(text|bytes)\(|\bshutil\."
)


def test_state_has_one_writer() -> None:
    """Only files.py and journal.py write; modules with files of their own (pipes, temporary folders, .git) are listed above."""
    found = [
        f"{path.name}:{number}"
        for path in MODULES
        if short(path) not in WRITERS | OWN_FILES
        for number, line in enumerate(path.read_text().split("\n"), start=1)
        if WRITING.search(line) and "os.rmdir(" not in line
    ]
    assert found == []


def test_one_module_prints() -> None:
    """console.py; the commands echo through click and rich."""
    found = [
        path.name
        for path in MODULES
        if short(path) != "base.console"
        and package(dotted(path)) != "cli"
        and re.search(r"\bprint\(|sys\.std(out|err)\.write", path.read_text())
    ]
    assert found == []


def test_no_module_but_agents_knows_an_agent_by_name() -> None:
    """A new agent is one file and one line. In the workspace a file such as CLAUDE.md or .claude/skills is a format, which
    every agent is given."""
    named = "|".join(AGENT_NAMES)
    formats = {"workspace": (r"(?<!\.)", r"(?!\.(local\.)?md)")}
    found = [
        f"{path.name}:{number}"
        for path in MODULES
        if package(dotted(path)) != "agents"
        for number, line in enumerate(path.read_text().split("\n"), start=1)
        for before, after in [formats.get(package(dotted(path)), ("", ""))]
        if re.search(rf"{before}\b({named})\b{after}", line, re.IGNORECASE)
    ]
    assert found == []


def texts(tree: ast.AST) -> Iterator[str]:
    """Every string in a module, except docstrings."""
    docstrings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value


def settles(path: Path) -> bool:
    """Whether a module is a role's script, or carries out its reply."""
    return package(dotted(path)) == "roles" or short(path).startswith("run.settle")


def test_no_module_but_settle_knows_a_role_by_name() -> None:
    """A role's front matter defines its rights, so a user's own role can have them too; raw.md has one name."""
    named = "|".join(path.stem for path in (HOME / "roles").glob("*.md") if path.stem not in ("common", TALKS))
    found = [
        f"{short(path)}: {text}"
        for path, tree in trees().items()
        if not settles(path) and short(path) != "memory.gates"  # the words of attacks
        for text in texts(tree)
        if re.search(rf"\b({named})\b", text, re.IGNORECASE)
    ]
    found_names = [
        f"{short(path)}: {node.id}"
        for path, tree in trees().items()
        if not settles(path)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and re.search(named, node.id, re.IGNORECASE)
    ]
    assert found == [
        "memory.curation.compaction: validator",  # whose untagged lines say what holds
        "memory.curation.graduation: worker",  # who has the identity that tricks and failures go to
        "state.raw: curator",
    ]
    assert found_names == ["memory.curation.graduation: WORKER", "state.raw: CURATOR"]


def test_each_thing_a_role_may_do_is_done_by_one_of_ours() -> None:
    """So `harness next` can name it; and each has a schema for its reply."""
    found = [roles.load(layout.Layout("/nowhere"), path.stem).capability for path in (HOME / "roles").glob("*.py")]
    assert sorted(found) == sorted(roles.CAPABILITIES) == sorted(replies.SCHEMAS)


def test_an_agent_is_described_in_one_place_and_so_is_a_row_of_a_transcript() -> None:
    """registry.settings_of and transcript.Row; no other module creates one."""
    makers = [
        short(path)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
        if (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) in ("Settings", "Row")
    ]
    assert set(makers) == {"agents.registry", "mission.transcript"}


def test_importing_has_no_effect() -> None:
    """No output, no folder, no file, no process: an interpreter that refuses them imports every module."""
    found_names = [
        ".".join(path.relative_to(HOME).with_suffix("").parts) for path in MODULES if package(dotted(path)) != "roles"
    ]
    program = (
        "import sys, importlib\n"
        "def hook(event, args):\n"
        "    if event in ('os.mkdir', 'os.remove', 'os.rename', 'os.putenv', 'subprocess.Popen', 'os.fork', 'socket.bind'):\n"
        "        raise SystemExit(f'importing did {event} {args}')\n"
        "    if event == 'open' and isinstance(args[1], str) and set(args[1]) & set('wax+'):\n"
        "        raise SystemExit(f'importing opened {args}')\n"
        f"sys.path.insert(0, {str(HOME)!r})\nsys.dont_write_bytecode = True\nsys.addaudithook(hook)\n"
        f"for name in {[name for name in found_names if not name.endswith('__main__')]!r}: importlib.import_module(name)\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


BELOW, TYPED = 80, 40  # imports inside functions, and `TYPE_CHECKING` blocks


def test_imports_stand_at_the_top() -> None:
    """What stands elsewhere costs a reader more than it saves; each says in its line why it does."""
    below, typed = set(), set()
    for path, tree in trees().items():
        lines = path.read_text().split("\n")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = [one for one in ast.walk(node) if isinstance(one, ast.Import | ast.ImportFrom)]
                below |= {(path.name, one.lineno, "  # " in lines[one.lineno - 1]) for one in inside}
            elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                typed.add((path.name, node.lineno, "  # " in lines[node.lineno - 1]))
    assert [place for *place, reason in sorted(below | typed) if not reason] == []
    assert (len(below) <= BELOW, len(typed) <= TYPED) == (True, True), (len(below), len(typed))


def test_every_exception_from_a_rule_carries_its_reason() -> None:
    """noqa, type: ignore and skip are followed by why."""
    bare = []
    for path in [*MODULES, *(HOME / "tests").rglob("*.py"), *(HOME / "bench").glob("*.py")]:
        for number, line in enumerate(path.read_text().split("\n"), start=1):
            mark = re.search(r"# (?:noqa|type: ignore)(?:: ?[A-Z0-9, ]+|\[[a-z, -]+\])?(.*)$", line)
            if mark and len(mark[1].strip(" -#")) < 8:
                bare.append(f"{path.name}:{number}")
        skips = re.findall(
            r"^@?(?: *)(pytest\.(?:mark\.)?skip(?:if)?\((?:[^()]|\([^()]*\))*\))", path.read_text(), re.M
        )
        bare += [
            f"{path.name}: {skip}" for skip in skips if "reason=" not in skip and not re.search(r"skip\(f?[\"']", skip)
        ]
    assert bare == []


def test_one_broad_handler_stands_at_the_very_top() -> None:
    """A fallback that hides a fault is a fault; a bug of ours must still end with its exit code. A program's own is its
    agent's."""
    found = [
        path.name
        for path in MODULES
        for line in path.read_text().split("\n")
        if re.search(r"except( Exception| BaseException as|:)", line)
    ]
    assert sorted(found) == ["exits.py", "hooks.py"]


def first_column(text: str, heading: str) -> set[str]:
    """The backticked first cells of the table under a heading."""
    body = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return {cell for row in re.findall(r"^\|([^|]*)\|", body, re.M) for cell in re.findall(r"`([^`]+)`", row)}


def test_the_page_of_paths_is_what_the_code_uses() -> None:
    """docs/layout.md names every key of names.py and every path of a run, and no other; each module that it names is there."""
    text = (HOME / "docs/layout.md").read_text()
    run = vars(layout.RunLayout("/r", "/l")).items()
    files = {path.removeprefix("/r/") for name, path in run if name not in ("folder", "lock")}
    assert first_column(text, "A run") == files
    keys = {key for name, key in vars(names).items() if name.isupper() and isinstance(key, str)}
    others = files | {names.TASK, names.ASKED_SPEC, names.MISSION_LOCK, names.STATE_LOCK, names.LOOP_LOCK}
    assert first_column(text, "The mission") == keys - others
    modules = re.findall(r"(?:\w+/)*\w+\.py\b", text)
    assert [
        name for name in modules if not any((HOME / f"harness{below}/{name}").exists() for below in ("", "/mission"))
    ] == []


def test_the_contract_page_is_what_the_code_holds() -> None:
    """docs/contract.md: exit codes, config keys, statuses, outcomes, decisions, front matter, replies."""
    text = (HOME / "docs/contract.md").read_text()
    codes = dict(re.findall(r"^\| `(\d+)` \| (.*) \|$", text, re.M))
    assert codes == {str(code): meaning for code, meaning in errors.EXIT_CODES.items()}
    keys = {*config.TopTable.fields, *(f"limits.{key}" for key in config.LimitsTable.fields)}
    keys |= {f"env.{key}" for key in config.EnvTable.fields} | {f"home.{key}" for key in config.HomeTable.fields}
    keys |= {f"checks.{key}" for key in config.ChecksTable.fields} | {
        f"proof.{key}" for key in config.ProofTable.fields
    }
    keys |= {f"workspace.{key}" for key in config.WorkspaceTable.fields}
    keys |= {f"team.{key}" for key in config.TeamTable.fields}
    keys |= {f"roles.NAME.{key}" for key in config.RoleTable.fields}
    keys |= {f"agents.NAME.{key}" for key in config.AgentTable.fields}
    keys |= {f"machines.NAME.{key}" for key in config.MachineTable.fields} | {"machines.sweep"}
    keys |= {f"prices.MODEL.{key}" for key in config.PriceTable.fields}
    keys |= {f"on.{key}" for key in config.OnTable.fields} | {
        f"checkpoint.{key}" for key in config.CheckpointTable.fields
    }
    assert first_column(text, "config.toml") == keys
    assert first_column(text, "Decisions") == {*rules.CODES, "BUDGET"}
    assert first_column(text, "Feature status") == set(STATUSES)
    assert first_column(text, "Outcomes") == set(runs.OUTCOMES)
    assert first_column(text, "Front matter") == set(roles.FrontMatter.fields)
    assert first_column(text, "Notes") == set(raw.TAGS)
    assert first_column(text, "Replies") == set(replies.SCHEMAS)


def test_the_page_of_architecture_fits_a_screen_and_has_every_package() -> None:
    """A first reader gets the whole house from one short page: its picture and its table have the packages, highest first."""
    text = ARCHITECTURE.read_text()
    assert len(text.encode()) <= LIMITS["bytes of the page of architecture"]
    assert re.findall(r"^\| `(\w+)` \|", text.split("## The seams")[0], re.M) == [*reversed(PACKAGES)]
    picture = re.findall(r"^    [a-z ]+  (\w+(?: · \w+)*)$", text, re.M)
    assert sorted(" · ".join(picture).split(" · ")) == sorted(PACKAGES)


def test_the_map_has_every_module_with_its_one_line() -> None:
    """`make map` prints what the page leaves out."""
    printed = list(architecture_map.lines(list(PACKAGES), arrows()))
    paths = [line.split()[0] for line in printed if line.startswith("  harness/")]
    ours = [path for path in MODULES if path.stem != "__init__" and package(dotted(path)) in PACKAGES]
    assert sorted(paths) == sorted(str(path.relative_to(HOME)) for path in ours)
    assert [line for line in printed if line.startswith("  harness/") and len(line.split("  ")[-1]) < 10] == []


def test_every_path_and_name_on_the_page_of_architecture_exists() -> None:
    """A newcomer who follows the page finds the right file; the names after a path in the tables exist in it."""
    text = ARCHITECTURE.read_text()
    ours = re.compile(r"(harness|roles|tests|docs|bench|examples)/.*|.*\.(py|sh)")
    named = {path for path in re.findall(r"`([^`\s]+)`", text) if ours.fullmatch(path)}
    assert len(named) > len(PACKAGES)
    assert [path for path in named if not [*HOME.glob(re.sub(r"<\w+>", "*", path))]] == []
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert [link for link in links if not (ARCHITECTURE.parent / link).exists()] == []
    pairs = re.findall(r"`([\w/.]+\.py)` \(((?:`\w+`(?:, )?)+)\)", text)
    found_names = [(path, name) for path, words in pairs for name in re.findall(r"`(\w+)`", words)]
    assert len(found_names) > len(PACKAGES)
    assert [
        (path, name) for path, name in found_names if not re.search(rf"\b{name}\b", (HOME / path).read_text())
    ] == []


def test_every_page_is_on_the_readme_and_its_links_lead_somewhere() -> None:
    """A reader finds each page of docs/ from README.md, and what a page links to exists."""
    pages = [HOME / "README.md", *sorted((HOME / "docs").glob("*.md"))]
    links = {page: re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()) for page in pages}
    assert {f"docs/{page.name}" for page in pages[1:]} - {*links[pages[0]]} == set()
    assert [(page.name, link) for page in pages for link in links[page] if not (page.parent / link).exists()] == []


def test_every_variable_of_ours_stands_in_the_contract() -> None:
    """Every such variable that the program, run.sh or the guardian reads from its environment."""
    texts = [path.read_text() for path in (*MODULES, HOME / "run.sh")]
    found_names = {name for text in texts for name in re.findall(r"\bHARNESS_[A-Z]+(?:_[A-Z]+)*\b", text)}
    known = (HOME / "docs/contract.md").read_text()
    assert {name for name in found_names if f"`{name}`" not in known} == set()


def test_no_test_measures_its_machine() -> None:
    """A limit of processor time fails on a slower machine: `helpers.growth` and `is_linear` compare a call with itself."""
    clocks = re.compile(r"process_time\(|perf_counter\(")
    found = {path.name for path in (HOME / "tests").rglob("*.py") if clocks.search(path.read_text())}
    assert found == {"helpers.py"}


def test_nothing_speaks_of_this_machine() -> None:
    """No tracked file contains an absolute path of a developer's machine."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=HOME, capture_output=True, text=True, check=True).stdout
    found_names = [name for name in listed.split("\0") if name and (HOME / name).is_file()]
    ours = (str(HOME), str(Path.home()) + "/.") if len(HOME.parts) > 2 else ()
    found = [name for name in found_names if any(path in (HOME / name).read_text(errors="replace") for path in ours)]
    assert found == []
