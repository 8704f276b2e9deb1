"""Fresh clones as check environments: the commit as on a machine that never saw the mission."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from harness.git import repository, settings
from harness.git.checkouts import clones, submodules
from harness.git.settings import RecordedSettings
from harness.mission import receipts
from harness.mission.check_environment import CheckEnvironment
from harness.process import temporary
from harness.process.confine import BUBBLEWRAP, Confinement
from harness.state.layout import Layout, state_home
from harness.workplace import confine, home_layer

MAX_SHOWN_PATHS = 3


@contextmanager
def cloned(
    layout: Layout, place: CheckEnvironment, what: str, known: RecordedSettings | None = None
) -> Iterator[CheckEnvironment]:
    """`clone` in a temporary folder named after `what`, with the configuration `known`."""
    folder = temporary.create(what, place.tag, ordinary=place.plain)
    try:
        yield clone(layout, folder, place, recorded(layout.folders.top, known))
    finally:
        temporary.remove(folder)


def clone(layout: Layout, folder: str, place: CheckEnvironment, recorded: RecordedSettings) -> CheckEnvironment:
    """Return `place` in a clone of the project's repository at its commit, made in `folder` (`git/checkouts/clones.py`), with a
    HOME of its own. Checks run where the project is in it.

    The repository and trees of missions are hidden. If that is impossible, each receipt names the files that contain
    such a path. A plain place is a clone backdated by a week on a branch, mounted at the path of the repository if
    possible. Raises GitFailed.
    """
    target = os.path.join(folder, os.path.basename(layout.folders.top))
    made = apart(place, folder, recorded, layout.folders.top, layout.folders.project).replace(
        directory=target, checkout=""
    )
    branch = (repository.default_branch(layout.folders.top) or "main") if place.plain else ""
    with clones.persons(recorded, target) as config:
        clones.make(layout.folders.top, target, place.head, recorded, config, layout.folders.prefix, branch=branch)
    found = submodules.find(layout.folders.top, place.head, recorded, target)
    made.notes += [f"warning: {one}" for one in found if one.fault]
    if place.plain:
        clones.date_back(target, made.git, layout.folders.top)
        made.confinement = made.confinement and _at(os.path.realpath(layout.folders.top), target, made.confinement)
    elif made.confinement is None or made.confinement.tier != BUBBLEWRAP:
        made.notes += _named(target, made.git, layout.folders.top)
    made.source = layout.folders.top
    return made.replace(directory=layout.folders.within(target), checkout=target) if layout.folders.prefix else made


def _at(path: str, clone: str, known: Confinement) -> Confinement:
    """`known` with the clone mounted at this path, and without visible signs of confinement."""
    hidden = [one for one in known.glass.hidden if not (one + "/").startswith(path + "/")]
    glass = known.glass.replace(moved={path: clone}, writable=[*known.glass.writable, path], hidden=hidden)
    return known.replace(glass=glass if known.tier == BUBBLEWRAP else known.glass, plain=True)


def apart(place: CheckEnvironment, folder: str, recorded: RecordedSettings, *hidden: str) -> CheckEnvironment:
    """`place` with a fresh HOME in `folder` that has the visible part of the recorded git configuration and, unless the place
    is plain, the mission's packages, and with these folders hidden."""
    packages = home_layer.packages_of(place.home) if place.home and not place.plain else ""
    home = confine.home_of_clone(os.path.join(folder, "home"), place.shown, packages)
    glass = place.confinement and confine.without(place.confinement, hidden)
    known = recorded.replace(persons=home_layer.public(recorded.persons))
    return place.replace(home=home, git=clones.configuration(known, home), confinement=glass)


def recorded(project: str, known: RecordedSettings | None = None) -> RecordedSettings:
    """The configuration recorded at init; the present one without a record."""
    return known or settings.record(project)


def _named(clone: str, config: str, project: str) -> list[str]:
    """One note, if a tracked file contains the path of the project, or that of a tree."""
    paths = dict.fromkeys(path for one in (project, state_home()) for path in (one, os.path.realpath(one)))
    found = clones.naming(clone, config, paths)
    more: Sequence[str] = [f"and {len(found) - MAX_SHOWN_PATHS} more"] if len(found) > MAX_SHOWN_PATHS else []
    return [receipts.OWN_FOLDER + ", ".join([*found[:MAX_SHOWN_PATHS], *more])] if found else []
