"""A system call filter that refuses access to kernel keyrings, which bubblewrap's namespaces do not separate.

The filter is a classic BPF program, see seccomp(2); numbers are those of linux/filter.h, linux/audit.h and the system
call tables. It checks each call by its architecture, so that 32-bit programs work, also without keyrings. Calls of an
architecture that is not in the table are allowed. ptrace is allowed: sanitizers and debuggers need it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from harness.base.errors import Unavailable

ADD_KEY = {  # by architecture; request_key and keyctl are the next two numbers
    0xC000003E: 248,  # x86_64; x32 is the same with X32 in the number
    0x40000003: 286,  # i386
    0xC00000B7: 217,  # aarch64
    0x40000028: 309,  # arm
}
X32 = 0x40000000
NUMBER, ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
LOAD, AND, EQUAL, AT_LEAST, ABOVE, RETURN = 0x20, 0x54, 0x15, 0x35, 0x25, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
SECCOMP, MODE_FILTER = 22, 2  # prctl(2)


def program() -> bytes:
    """The filter as the kernel and `bwrap --seccomp` read it: one struct sock_filter (code, jumps, value) after another."""
    words = [(LOAD, 0, 0, ARCHITECTURE)]
    for architecture, first in ADD_KEY.items():
        words += [
            (EQUAL, 0, 6, architecture),
            (LOAD, 0, 0, NUMBER),
            (AND, 0, 0, 0xFFFFFFFF ^ X32),
            (AT_LEAST, 0, 2, first),
            (ABOVE, 1, 0, first + 2),
            (RETURN, 0, 0, REFUSE),
            (RETURN, 0, 0, ALLOW),
        ]
    return b"".join(struct.pack("=HBBI", *word) for word in [*words, (RETURN, 0, 0, ALLOW)])


def restrict() -> None:
    """Apply the filter to this process and its descendants, which then cannot gain privileges (prctl, NO_NEW_PRIVS).
    Raises Unavailable."""
    data = ctypes.create_string_buffer(program())
    asked = struct.pack("@HP", len(program()) // 8, ctypes.addressof(data))
    if ctypes.CDLL(None, use_errno=True).prctl(SECCOMP, MODE_FILTER, ctypes.c_char_p(asked), 0, 0):
        raise Unavailable(f"The kernel refuses the system call filter: {os.strerror(ctypes.get_errno())}.")
