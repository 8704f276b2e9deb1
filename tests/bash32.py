"""run.sh under the oldest bash that it promises: `python tests/bash32.py [what pytest takes]` builds bash 3.2 and runs its tests.

The source comes from bash's own git repository (or `BASH32_SOURCE=`, a copy of it), at the commit of the release, so git has
checked every byte of it. It is built once, into .bash-3.2; no Debian has had it since 2010, and every macOS has it. The checks of
the missions run under it, too: its folder is first on the PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
BASH = CHECKOUT / ".bash-3.2" / "bash"
RELEASE = "0628567a28f3510f506ae46cb9b24b73a6d2dc5d"  # "Imported from ../bash-3.2.tar.gz."
SOURCES = ("https://git.savannah.gnu.org/git/bash.git", "https://github.com/bminor/bash")
OLD_C = "-O1 -std=gnu89 -w"  # its configure and its code are of 2006
TESTS = ("tests/test_run_sh.py", "tests/test_lanes.py", "tests/test_signals.py")
NOT_BUILT = 69


def fetch(folder: Path) -> str:
    """Check the release out into the folder; "" once it is there, else the words of git for each source."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    refused = []
    for source in (os.environ["BASH32_SOURCE"],) if os.environ.get("BASH32_SOURCE") else SOURCES:
        words = ["git", "-C", str(folder), "fetch", "-q", "--depth", "1", source, RELEASE]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
        if done.returncode == 0:
            subprocess.run(["git", "-C", str(folder), "checkout", "-q", "FETCH_HEAD"], check=True)
            return ""
        first, _, _ = done.stderr.partition("\n")
        refused.append(f"  {source}: {first}")
    return "\n".join(refused)


def build(folder: Path) -> str:
    """Make .bash-3.2/bash from the source in the folder; "" once it is made, else the end of what the compiler said."""
    for path in folder.rglob("*"):
        os.utime(path, (0, 0), follow_symlinks=False)  # else make would make its parser anew, which needs yacc
    for words in (["sh", "./configure", "--without-bash-malloc", "--disable-nls"], ["make"]):
        done = subprocess.run(
            words, cwd=folder, env={**os.environ, "CFLAGS": OLD_C}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return "\n".join((done.stdout + done.stderr).splitlines()[-10:])
    BASH.parent.mkdir(exist_ok=True)
    shutil.copy(folder / "bash", BASH)
    return ""


def main(words: list[str]) -> int:
    """Build it where it is not there yet, and run the tests under it."""
    if not BASH.exists():
        with tempfile.TemporaryDirectory(prefix="bash-3.2-") as folder:
            if fault := fetch(Path(folder)) or build(Path(folder)):
                sys.stdout.write(f"there is no bash 3.2 here, and none could be built:\n{fault}\n")
                sys.stdout.write(
                    "A copy of its repository serves too: make test-bash32 BASH32_SOURCE=/path/to/bash.git\n"
                )
                return NOT_BUILT
    sys.stdout.write(
        subprocess.run([BASH, "--version"], capture_output=True, text=True, check=True).stdout.partition("\n")[0]
    )
    sys.stdout.write("\n")
    sys.stdout.flush()
    env = {**os.environ, "PATH": f"{BASH.parent}{os.pathsep}{os.environ['PATH']}"}
    tests = words if any(not word.startswith("-") for word in words) else [*TESTS, *words]
    return subprocess.run([sys.executable, "-m", "pytest", *tests], cwd=CHECKOUT, env=env, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
