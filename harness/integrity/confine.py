"""What the processes of a run may touch: its tree, its temporary folder, and what trust or the adapter names.

The rest of the machine is read-only to them, and keys, sockets and other missions are not there. `process/confine.py` has
the mechanism, this module the rules.
"""

from __future__ import annotations

import os
import sys

from harness.base.errors import Unavailable
from harness.git import dotgit
from harness.integrity import home_layer
from harness.process import confine
from harness.process.confine import Confinement, Glass
from harness.store import documents, files
from harness.store.layout import Layout, home, identity_folder, state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.model.config import Config

CACHE = "confine"
MISSING = (
    'confine = "required" in {config}, and neither bubblewrap nor Landlock works here. Install bubblewrap (the package '
    'has that name), and see docs/confinement.md for containers; or write confine = "auto".'
)
IN_PLACE = 'confine = "required" needs a tree of its own for each run: take workplace = "project" out of {config}.'


def tier(layout: Layout, settings: Config) -> str:
    """The tier of confinement of this mission here, `none` where there is none; raises Unavailable where it is required."""
    if settings.confine == "off":
        return confine.NONE
    if settings.workplace == "project":
        if settings.confine == "required":
            raise Unavailable(IN_PLACE.format(config=layout.relative(layout.config)))
        return confine.NONE
    remembered = documents.recall(layout.cache, CACHE, "")
    found, key = confine.available(remembered if isinstance(remembered, str) else "")
    if key and key != remembered:
        documents.keep(layout.cache, CACHE, "", key)
    if found == confine.NONE and settings.confine == "required":
        raise Unavailable(MISSING.format(config=layout.relative(layout.config)))
    return str(found)


def of_mission(layout: Layout, settings: Config, tree: str, how: str) -> Confinement | None:
    """The confinement of checks, services and setup in this tree, and the beginning of an agent's; None without a tier."""
    if how == confine.NONE:
        return None
    real, layer = os.path.expanduser("~"), layer_of(tree)
    home_layer.make(layer, real)
    network = "loopback" if settings.network == "loopback" else "host" if settings.network else "none"
    glass = Glass(writable=[layer], readable=_readable(layout, real), hidden=_hidden(real, tree), network=network)
    return Confinement(glass=glass, tier=how)


def layer_of(tree: str) -> str:
    """The HOME of programs in this tree: links to a person's HOME, and what tools write there."""
    return tree + ".home"


def _readable(layout: Layout, real: str) -> list[str]:
    """Folders to be seen even where they lie below a private or a hidden one."""
    common = os.path.abspath(dotgit.folders(layout.project)[1])
    ours = [layout.project, layout.state, common, home(), os.path.dirname(os.path.dirname(files.__file__)), real]
    python = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))]
    names = os.path.dirname(os.path.realpath("/etc/resolv.conf"))  # some systems keep it below /run
    return list(dict.fromkeys(folder for folder in (*ours, *python, *_on_path(), names) if os.path.isdir(folder)))


def _on_path() -> list[str]:
    """The folders on the PATH of this process."""
    return [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]


def _hidden(real: str, tree: str) -> list[str]:
    """Keys and logins below HOME, and the trees of other missions."""
    missions, own = state_home(), os.path.dirname(tree)
    others = [path for name in files.names(missions) if (path := os.path.join(missions, name)) != own]
    return [*(path for name in home_layer.KEYS if os.path.lexists(path := os.path.join(real, name))), *others]


def of_agent(
    layout: Layout, known: Confinement, folders: Sequence[str], trust: str, adapter: Iterable[str]
) -> Confinement:
    """`known` with what an agent may write besides: these folders, its adapter's, and under full trust a person's HOME."""
    named = [path for path in map(os.path.realpath, map(os.path.expanduser, adapter)) if os.path.isdir(path)]
    whole = _opened(os.path.realpath(os.path.expanduser("~")), protected(layout)) if trust == "full" else []
    keys = [] if trust == "full" else known.glass.hidden
    writable = dict.fromkeys([*known.glass.writable, *folders, *whole, *named])
    return known.replace(glass=known.glass.replace(writable=list(writable), hidden=keys))


def protected(layout: Layout) -> list[str]:
    """What no process of a run may write, whatever the trust: state, git, the harness, roles, identity, git's settings, and
    the programs and the Python that the harness and its person start by name."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    paths = [layout.project, layout.state, home(), os.path.dirname(os.path.dirname(files.__file__)), identity_folder()]
    paths += [os.path.abspath(dotgit.folders(layout.project)[1]), state_home(), os.path.join(config, "git"), sys.prefix]
    paths += [os.path.join(config, name) for name in ("fish", "autostart", "systemd")]
    paths += [sys.base_prefix, *_on_path()]
    return list(map(os.path.realpath, paths))


def _opened(folder: str, spared: Sequence[str]) -> list[str]:
    """The folders below `folder`, as high up as possible, that neither are nor hold nor lie in a spared path.

    Folders above a spared one stay read-only themselves: else a rename of them would take it away.
    """
    found = []
    for name in files.names(folder):
        path = os.path.join(folder, name)
        if os.path.islink(path) or not os.path.isdir(path) or path in spared:
            continue
        inside = any(one.startswith(path + "/") for one in spared)
        found += _opened(path, spared) if inside else [path]
    return found
