"""UTF-8 in kernels: Arrow takes strings over from a file unread."""

from __future__ import annotations

from ps2stream.arrays import UInt8s
from ps2stream.kernels import kernel, signed

_LAST_CODE = 0x10FFFF
_BLOCK = 32


@kernel
def is_utf8(data: UInt8s, start: int, stop: int) -> bool:
    """Say whether bytes are UTF-8, by the same rules as Python's own decoder."""
    at = start
    while at < stop:
        at = behind_ascii(data, at, stop)
        if at < stop:
            n_bytes = _character_size(data, at, stop)
            if n_bytes == 0:
                return False
            at += n_bytes
    return True


@kernel
def behind_ascii(data: UInt8s, at: int, stop: int) -> int:
    """Return where the first byte is that is not ASCII, or ``stop``."""
    while at + _BLOCK <= stop:
        together = 0
        for i in range(at, at + _BLOCK):
            together |= signed(data[i])
        if together >= 0x80:
            break
        at += _BLOCK
    while at < stop and data[at] < 0x80:
        at += 1
    return at


@kernel
def _character_size(data: UInt8s, at: int, stop: int) -> int:
    """Return the bytes of a character that is not ASCII; 0 for what is none."""
    lead = signed(data[at])
    n_bytes = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead < 0xC2 or lead > 0xF4 or at + n_bytes > stop:
        return 0
    code = lead & (0x7F >> n_bytes)
    for i in range(at + 1, at + n_bytes):
        following = signed(data[i]) ^ 0x80
        if following >= 0x40:
            return 0
        code = code << 6 | following
    # Not longer than need be, and no half of a surrogate pair.
    if n_bytes == 3:
        return n_bytes if code >= 0x800 and not 0xD800 <= code < 0xE000 else 0
    if n_bytes == 4:
        return n_bytes if 0x10000 <= code <= _LAST_CODE else 0
    return n_bytes
