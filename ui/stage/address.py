"""Where the room finds what the projector shows: an address, and the code that a phone's camera reads."""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

import segno

MAX_ADDRESS = 1200  # characters: of more, a code has squares too small for the back row
OUTSIDE = (
    "192.0.2.1"  # an address kept for examples (RFC 5737): asked for the way to it, nothing is sent there
)


class PhoneAddress(NamedTuple):
    """An address for phones, and a note about it."""

    address: str
    note: str


def for_phones(
    address: object, *, listens: str | None = None, local: str | None = None, public: bool = False
) -> PhoneAddress:
    """Returns the address under which phones reach the page that this browser shows: its own, or, where that
    is this computer's name for itself, the computer's in its local network. The note says what was
    changed, or why it cannot be reached. `listens` is the address that the server was told to listen at;
    `local` this computer's, which is no business of strangers: on a `public` server only the browser's own
    address counts.

    Anything but a web address gives an empty one.
    """
    if not isinstance(address, str) or len(address) > 8 * MAX_ADDRESS:
        return PhoneAddress("", "")
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return PhoneAddress("", "")
    if parts.scheme not in ("http", "https") or not host:
        return PhoneAddress("", "")
    if not _itself(host):
        return PhoneAddress(urlunsplit(parts), "")
    if public:
        return PhoneAddress(
            "", "This address works only on this computer: open the page at the address that phones will use."
        )
    if listens is not None and _itself(listens):
        return PhoneAddress(
            "",
            f"This server listens at {listens}, which phones cannot reach: start it with HOST=0.0.0.0"
            " (glassformer --host 0.0.0.0).",
        )
    local = local_address() if local is None else local
    if not local:
        return PhoneAddress("", "This computer is not on a network, so phones cannot reach it.")
    host_part = f"[{local}]" if ":" in local else local
    changed = parts._replace(netloc=host_part if port is None else f"{host_part}:{port}")
    return PhoneAddress(urlunsplit(changed), f"For phones on the same network as this computer ({local}).")


def _itself(host: str) -> bool:
    """True if a host is a computer's name for itself.

    >>> _itself("localhost"), _itself("127.0.0.1"), _itself("::1"), _itself("example.org")
    (True, True, True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def local_address() -> str:
    """Returns this computer's address in its network; nothing where it is in none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((OUTSIDE, 9))  # a datagram's way is looked up, and none is sent
            own_address = str(probe.getsockname()[0])
        except OSError:
            return ""
    return "" if _itself(own_address) or own_address == "0.0.0.0" else own_address


def code(address: str) -> dict[str, str | int]:
    """Returns the QR code (ISO/IEC 18004) of an address: {size: squares a side, with the quiet edge; path:
    the dark squares as an SVG path}. Empty for an address that is empty, or longer than MAX_ADDRESS.

    >>> code(""), code("http://a/")["size"]
    ({}, 29)
    """
    if not address or len(address) > MAX_ADDRESS:
        return {}
    edge = 4
    rows = segno.make(address, error="l", micro=False).matrix
    path = "".join(_line(row, edge, y + edge) for y, row in enumerate(rows))
    return {"size": len(rows) + 2 * edge, "path": path}


def _line(row: bytes | bytearray, left: int, y: int) -> str:
    """The dark squares of a row, neighbours together.

    >>> _line(bytes([1, 1, 0, 1]), 4, 7)
    'M4 7h2v1h-2zM7 7h1v1h-1z'
    """
    squares, start = [], None
    for x, dark in enumerate([*row, 0]):
        if dark and start is None:
            start = x
        elif not dark and start is not None:
            squares.append(f"M{left + start} {y}h{x - start}v1h-{x - start}z")
            start = None
    return "".join(squares)
