"""Turns a verb's refusals and the system's errors into a FileFault with a helpful sentence; the only place that catches
both."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from types import FunctionType
from typing import ParamSpec, TypeVar, cast

from harness.filesystem._replace import LOCK_SECONDS, FileBusy
from harness.filesystem.protocol import FileFault

P = ParamSpec("P")
T = TypeVar("T")

WORDS = {  # errno: (kind of fault, sentence with the remedy)
    errno.ENOENT: ("missing", "There is no {path}. List its folder to see what is there."),
    errno.ENOTDIR: ("not_folder", "A part of {path} is not a folder."),
    errno.EISDIR: ("is_folder", "{path} is a folder. Name a file, or list it."),
    errno.EEXIST: ("exists", "{path} is there already. Read and edit it, or choose another name."),
    errno.ENXIO: ("not_regular", "{path} is a pipe, a socket or a device, not a file."),
    errno.EXDEV: ("outside", "{path} leads out of the root. Only what is below it can be reached."),
    errno.ELOOP: ("invalid", "{path} leads through circular links."),
    errno.ENAMETOOLONG: ("invalid", "{path} has a name that is too long for this filesystem."),
    errno.EINVAL: ("invalid", "{path} cannot be used so: {reason}."),
    errno.EROFS: ("read_only", "{path} is read-only: {reason}."),
    errno.EACCES: ("denied", "The system does not permit it for {path}."),
    errno.EPERM: ("denied", "The system does not permit it for {path}."),
    errno.ENOSPC: ("no_space", "There is no space left for {path}. It was not changed."),
    errno.EDQUOT: ("no_space", "The user's quota of space is used up, so {path} was not changed."),
    errno.EFBIG: ("too_large", "{path} would be larger than the system permits."),
    errno.ETXTBSY: ("busy", "{path} is in use, and the system does not permit it now."),
    errno.EBUSY: ("busy", "{path} is in use, and the system does not permit it now."),
}


class VerbRefusal(Exception):
    """A FileFault as an exception inside a verb; without a path it gets that of the verb."""

    def __init__(self, kind: str, path: str, text: str) -> None:
        super().__init__(text)
        self.fault = FileFault(kind=kind, path=path, text=text)


def changed_meanwhile(path: str) -> VerbRefusal:
    """The refusal for a file that changed since the caller read it."""
    text = f"{path} has changed since it was read. Read it again, then repeat the change."
    return VerbRefusal("changed", path, text)


def read_only(path: str, what: str) -> VerbRefusal:
    """The refusal for a change of `path` that would change `what`, which is read-only."""
    above = "" if what == path else f" {path} cannot be changed without it."
    return VerbRefusal("read_only", path, f"{what} is read-only.{above} A command or a person may have to do it.")


def root_stays(path: str) -> VerbRefusal:
    """The refusal for a change of the root."""
    return VerbRefusal("invalid", path, f"{path} is the root itself, which stays as it is.")


def catch_faults(path: str, act: Callable[[], T]) -> T | FileFault:
    """The result of `act`, or a FileFault. Errors that a model cannot correct are raised."""
    try:
        return act()
    except VerbRefusal as refused:
        return refused.fault if refused.fault.path else refused.fault.replace(path=path)
    except FileBusy:
        text = f"Another program has held a lock on {path} for {LOCK_SECONDS:.0f} s. Try again later."
        return FileFault(kind="busy", path=path, text=text)
    except UnicodeEncodeError:
        return FileFault(kind="invalid", path=path, text="The path has characters that no file name can have.")
    except OSError as fault:
        if fault.errno not in WORDS:
            raise
        kind, text = WORDS[fault.errno]
        return FileFault(kind=kind, path=path, text=text.format(path=path, reason=fault.strerror))


def verb(method: Callable[P, T]) -> Callable[P, T | FileFault]:
    """A method whose refusals, and errors of the system, are a FileFault for its argument `path`."""
    place = cast(FunctionType, method).__code__.co_varnames.index("path")

    @functools.wraps(method)
    def made(*args: P.args, **kwargs: P.kwargs) -> T | FileFault:
        path = args[place] if len(args) > place else kwargs.get("path", ".")
        return catch_faults(str(path), lambda: method(*args, **kwargs))

    return made


def unwrap(result: T | FileFault) -> T:
    """A result that is no fault; raises a fault as VerbRefusal."""
    if isinstance(result, FileFault):
        raise VerbRefusal(result.kind, result.path, result.text)
    return result


def os_error(number: int) -> OSError:
    """The error of the system with this number."""
    return OSError(number, os.strerror(number))
