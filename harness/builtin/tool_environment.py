"""Where the tools of a conversation work: its files, the confinement of its programs, and the description in its system
text."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.base import clock
from harness.base.errors import Unavailable
from harness.base.record import Record
from harness.filesystem.local import Local, Mount
from harness.filesystem.protocol import FileEntry, Filesystem, LocalFolder, Shell
from harness.filesystem.shell import LocalShell
from harness.mission import config
from harness.process.confine import BUBBLEWRAP, Confinement
from harness.state.layout import Layout
from harness.stores.store import StoreKey
from harness.workplace import confine

STATE = ".harness"  # how a prompt names the mission's state
RESULTS = ".results"
PLACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "place.md")
UNKNOWN = "not known"
ROOT = "`.`, the root of your files"
NONE, OPEN, LOOPBACK = "none", "yes", "loopback only"


class ToolEnvironment(Record):
    """Where the tools of a conversation work. `folder`: their root; `shell`: whether commands may run there; `filesystem`: other
    files in place of those of the folder. `variables`: the environment of commands (None: the passing part of this process's);
    `confinement`: of commands and servers (None: not confined); `refusal`: why no program may be started, or "".

    `layout` and `run`: the mission and its run, None and "" outside one; `home`: the project whose workspace counts, None for
    that of the mission. `results`: the folder for results that are too long, or ""; `memory`: the text that
    memory_save adds to outside a run, None for none; `also`: more mounted folders."""

    folder: str = ""
    shell: bool = True
    filesystem: Filesystem | None = None
    variables: Mapping[str, str] | None = None
    confinement: Confinement | None = None
    refusal: str = ""
    layout: Layout | None = None
    run: str = ""
    home: Layout | None = None
    results: str = ""
    memory: StoreKey | None = None
    also: Mapping[str, Mount] = {}

    @property
    def root(self) -> str:
        """The folder of this machine that holds the files; "" where they are elsewhere."""
        if self.filesystem is None:
            return self.folder
        return self.filesystem.folder() if isinstance(self.filesystem, LocalFolder) else ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the files are not in a folder of this machine, so that local changes have no effect there."""
        return self.filesystem is not None and not self.root

    @property
    def shows_results(self) -> bool:
        """Whether results that are too long can be kept where the tools read them."""
        other = self.filesystem
        return isinstance(other.stat(RESULTS), FileEntry) if other else bool(self.results)

    def seen(self, path: str) -> str:
        """The path as commands see it."""
        return self.confinement.seen(path) if self.confinement else path

    @property
    def has_shell(self) -> bool:
        """Whether there is a shell, though it may be refused."""
        return isinstance(self.filesystem, Shell) if self.filesystem else self.shell


def confined(known: ToolEnvironment, starts: bool) -> ToolEnvironment:
    """The environment with what its commands and servers may touch, as config.toml has it; also where `filesystem` has other
    files than those of its folder."""
    if known.confinement is not None or not starts or known.home is None:
        return known
    other, shell = known.filesystem, known.shell or known.filesystem is not None
    folder = known.root or known.home.folders.project
    try:
        settings, results = config.load(known.home), known.results if shell else ""
        held, variables = confine.of_conversation(known.home, settings, folder, results, known.variables)
        if held and known.is_elsewhere:
            held = held.reading(folder)
        made = known.replace(folder=folder, confinement=held, variables=variables)
    except Unavailable as fault:
        made = known.replace(folder=folder, refusal=str(fault))
    if other is not None and isinstance(other, Shell):
        made = made.replace(filesystem=other.confined(made.confinement, made.variables, made.refusal))
    return made


def files_of(known: ToolEnvironment) -> Filesystem:
    """The files of the folder, with its mounts."""
    also = {**known.also}
    if known.layout and STATE not in also:
        also[STATE] = Mount(path=known.layout.state, mode="read")
    if known.results:
        also[RESULTS] = Mount(path=known.results, mode="write")
    if not known.shell:
        return Local(known.folder, also=also)
    homes = [known.layout.folders.project] if known.layout else []
    held, refusal = known.confinement, known.refusal
    return LocalShell(known.folder, also=also, homes=homes, environment=known.variables, confine=held, refusal=refusal)


def described(known: ToolEnvironment, name: str) -> str:
    """The description of the place in the system text, as of today, for the conversation of this name."""
    here, shell = bool(known.root), known.has_shell and not known.refusal
    # Only then is it a user's folder, which no command and no other program names.
    is_own = known.filesystem is None and not known.shell
    machine = os.uname()
    temporary = (known.variables or os.environ).get("TMPDIR", "/tmp")
    held = known.confinement
    with open(PLACE, encoding="utf-8") as file:
        return file.read().format(
            date=clock.stamp(clock.now())[:10],
            system=f"{machine.sysname} {machine.release} {machine.machine}" if here else UNKNOWN,
            folder=known.seen(known.root) if here and not is_own else ROOT,
            temporary=NONE if not shell else temporary if here else UNKNOWN,
            name=name,
            confinement=(held.tier if held else "not confined") if here else UNKNOWN,
            network=NONE if not shell else _network(held) if here else UNKNOWN,
            shell="bash" if shell else NONE,
        )


def reach(known: ToolEnvironment) -> str:
    """What a command may touch, for the person who decides about it; "" without a shell."""
    if not known.has_shell or known.refusal:
        return ""
    if known.is_elsewhere:
        return "It runs where the files are, and may change what is there; it does not see this folder."
    if known.confinement is None:
        return "It is not confined: it may change and send what you may."
    folders = ", ".join(known.confinement.glass.writable) or "no file"
    return f"It may change {folders}. Network: {_network(known.confinement)}."


def _network(held: Confinement | None) -> str:
    """The network that commands reach; only bubblewrap restricts it."""
    if held is None or held.tier != BUBBLEWRAP or held.glass.network == "host":
        return OPEN
    return LOOPBACK if held.holder else NONE
