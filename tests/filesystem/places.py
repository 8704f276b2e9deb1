"""Places beside this process for tests of remote shells: a command, ssh to a server that the tests start, a sandbox."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from harness.filesystem._remote_shell import RemoteConnection, RemoteShell
from harness.filesystem.sandbox import sandbox
from harness.process import confine
from harness.process.supervise import Child

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
SERVERS = list[Child]()
NO_SSHD = "needs sshd, of the package openssh-server"
NO_BUBBLEWRAP = "needs bubblewrap"


@functools.cache
def behind(*prefix: str) -> RemoteConnection:
    """A connection for all tests of this process."""
    made = RemoteConnection(prefix)
    atexit.register(made.close)
    return made


@functools.cache
def boxed(folder: str) -> RemoteConnection:
    """A sandbox in which this folder is /workspace, for all tests of this process."""
    if confine.available() != confine.BUBBLEWRAP:
        pytest.skip(reason=NO_BUBBLEWRAP)
    made = sandbox(folder, network="loopback").connection
    atexit.register(made.close)
    return made


def in_sandbox(folder: Path, *names: str) -> RemoteShell:
    """A folder, or one below it, in the sandbox of its parent."""
    return RemoteShell(boxed(str(folder.parent)), "/".join(["/workspace", folder.name, *names]))


@functools.cache
def ssh() -> tuple[str, ...]:
    """The command that leads to this machine, over a server of our own on the loopback."""
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip(reason=NO_SSHD)
    folder = tempfile.mkdtemp()
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{name}"], check=True)
    os.rename(f"{folder}/key.pub", f"{folder}/authorized")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.makedirs("/run/sshd", exist_ok=True)
    options = [f"HostKey={folder}/host", f"AuthorizedKeysFile={folder}/authorized", "StrictModes=no", "UsePAM=no"]
    options.append(
        f"SetEnv=HOME={folder} PATH={os.environ['PATH']}"
    )  # without the login files of whoever runs the tests
    words = [SSHD, "-D", "-e", "-f", "/dev/null", "-p", str(port), "-o", "ListenAddress=127.0.0.1"]
    words += [f"-o{one}" for one in [*options, "LogLevel=QUIET"]]
    SERVERS.append(
        Child(words, cwd="/", env=os.environ, wall_seconds=3600)
    )  # it ends with this process, however that ends
    atexit.register(shutil.rmtree, folder)
    client = ["-F", "none", "-i", f"{folder}/key", "-p", str(port), "-o", "StrictHostKeyChecking=no"]
    client += ["-o", f"UserKnownHostsFile={folder}/known", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes"]
    for _ in range(600):
        if not subprocess.run(["ssh", *client, "127.0.0.1", "true"], capture_output=True).returncode:
            return ("ssh", *client, "127.0.0.1")
        time.sleep(0.1)
    pytest.skip(reason="sshd does not start here")
