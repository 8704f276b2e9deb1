"""Promises of harness/filesystem/_remote_server.py: what one connection may ask for; the rest is in test_remote_shell.py."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.filesystem._remote_server import RemoteServer
from harness.filesystem.protocol import FileFault, Listing


def test_a_request_names_its_folder_which_is_made(tmp_path: Path) -> None:
    """Each has a root of its own, out of which no path leads."""
    server = RemoteServer()
    for name in ("a", "b/c"):
        found = server.result(1, str(tmp_path / name), "ls", ["."], {})
        assert isinstance(found, Listing)
    assert (tmp_path / "b/c").is_dir()
    fault = server.result(1, str(tmp_path / "a"), "read", ["../b"], {})
    assert isinstance(fault, FileFault)
    assert fault.kind == "outside"


def test_a_command_of_another_connection_is_said_to_have_ended(tmp_path: Path) -> None:
    """And what is no verb is refused."""
    server = RemoteServer()
    server.stops[1] = threading.Event()
    with pytest.raises(ValueError, match="has ended"):
        server.result(1, str(tmp_path), "status", ["job-1"], {})
    with pytest.raises(ValueError, match="no verb"):
        server.result(1, str(tmp_path), "located", ["x"], {})
