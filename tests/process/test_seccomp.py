"""The filter on system calls: keyrings cannot be reached by any way into the kernel, and every other call goes on."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from harness.process import _seccomp, confine, landlock, supervise
from harness.process.confine import BUBBLEWRAP, LANDLOCK, Confinement, Glass
from tests.other_user import BECOME, OtherUser

ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONPATH": str(Path(_seccomp.__file__).parents[2])}
TIERS = [
    pytest.param(
        BUBBLEWRAP,
        marks=pytest.mark.skipif(confine.available() != BUBBLEWRAP, reason="bubblewrap cannot be used here"),
    ),
    pytest.param(LANDLOCK, marks=pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")),
]
NATIVE = {"x86_64": 248, "aarch64": 217}
needs_keyrings = pytest.mark.skipif(
    platform.machine() not in NATIVE or not os.path.exists("/proc/keys"), reason="no keyrings, or unknown numbers here"
)
CALL = """import ctypes, os, sys
library = ctypes.CDLL(None, use_errno=True)
words = [ctypes.c_long(word) for word in (%s, 0, -3, 0, 0, 0)]  # keyctl: the id of the session keyring
answer = library.syscall(*words)
print("done" if answer >= 0 else os.strerror(ctypes.get_errno()))
"""
INTERRUPT = """import ctypes, mmap, os
# mov eax, NUMBER; push rbx; xor ebx, ebx; mov ecx, -3; xor edx, edx; xor esi, esi; int 0x80; pop rbx; ret
code = b"\\xb8" + (%d).to_bytes(4, "little") + bytes.fromhex("53 31db b9fdffffff 31d2 31f6 cd80 5b c3")
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
answer = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
print("done" if answer >= 0 else os.strerror(-answer))
"""  # how a 32-bit program calls the kernel


def said(script: str, tier: str) -> str:
    """What a script of Python prints on a tier, "" for none."""
    output: list[bytes] = []
    supervise.run(
        [sys.executable, "-c", script],
        cwd="/",
        env=ENV,
        wall_seconds=60,
        sink=lambda _, chunk: output.append(chunk),
        confine=Confinement(glass=Glass(readable=[ENV["PYTHONPATH"]]), tier=tier) if tier else None,
    )
    return b"".join(output).decode().strip()


@needs_keyrings
@pytest.mark.parametrize("tier", TIERS)
def test_no_program_reaches_a_keyring(tier: str) -> None:
    """add_key, request_key and keyctl; where nothing confines, the last one works."""
    first = NATIVE[platform.machine()]
    assert said(CALL % (first + 2), "") == "done"
    assert {said(CALL % number, tier) for number in range(first, first + 3)} == {"Operation not permitted"}
    assert "Operation not permitted" not in {said(CALL % number, tier) for number in (first - 1, first + 3)}


@needs_keyrings
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other ways into the kernel are those of x86")
@pytest.mark.parametrize("tier", TIERS)
def test_nor_by_the_way_of_a_32_bit_program(tier: str) -> None:
    """i386 has numbers of its own, x32 those of x86_64 with a bit set; other calls of such a program go on."""
    if said(INTERRUPT % 288, "") == "done":  # keyctl; the kernel may be built without i386
        assert {said(INTERRUPT % number, tier) for number in (286, 287, 288)} == {"Operation not permitted"}
        assert said(INTERRUPT % 20, tier) == "done"  # getpid
    assert {said(CALL % (_seccomp.X32 + number), tier) for number in (248, 249, 250)} == {"Operation not permitted"}


@pytest.mark.parametrize("tier", TIERS)
def test_a_debugger_still_works(tier: str) -> None:
    """ptrace is allowed: sanitizers and debuggers begin with a child that asks its parent to trace it (PTRACE_TRACEME)."""
    traceme = """import ctypes, os
if os.fork() == 0:
    print(ctypes.CDLL(None).ptrace(0, 0, 0, 0), flush=True)
    os._exit(0)
os.wait()
"""
    assert said(traceme, tier) == "0"


def test_a_kernel_that_refuses_is_named(request: pytest.FixtureRequest) -> None:
    """Without NO_NEW_PRIVS, and not as root, the kernel takes no filter."""
    words, env = [sys.executable], ENV
    if os.geteuid() == 0:
        nobody: OtherUser = request.getfixturevalue("nobody")
        words, env = [*BECOME, nobody.python], {**ENV, **nobody.env}
    words += ["-c", "from harness.process import _seccomp; _seccomp.restrict()"]
    done = subprocess.run(words, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert "The kernel refuses the system call filter: Permission denied." in done.stderr
