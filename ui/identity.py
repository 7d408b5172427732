"""Whose browser it is, and from where: keys that this server has signed, and the address behind a proxy.

A key that the server did not make counts for nothing, so nobody can invent one, or guess another's. Signed
are they with $GLASSFORMER_SECRET, which several servers behind one address have to share, or with a secret
made at the first start, in a file that only this user may read.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import secrets
from functools import cache
from pathlib import Path

from itsdangerous import BadSignature, Signer

from engine.data.corpora import cache_folder
from engine.errors import ConfigError, GlassformerError

COOKIE = "glassformer"
SECRET, TRUST = "GLASSFORMER_SECRET", "GLASSFORMER_TRUST_PROXY"
SHORTEST = 16  # characters of a secret


def new_cookie() -> str:
    """Returns the cookie of somebody who was never here: a key nobody can guess, and the server's word for
    it.
    """
    return _signer().sign(secrets.token_urlsafe(32)).decode("ascii")


def key_in(cookie: object) -> str | None:
    """Returns the key in a cookie, if this server made it."""
    try:
        return _signer().unsign(cookie).decode("ascii") if isinstance(cookie, str) else None
    except (BadSignature, UnicodeError):
        return None


def _signer() -> Signer:
    return Signer(_secret(), salt="glassformer owner", digest_method=hashlib.sha256)


@cache
def _secret() -> bytes:
    return secret(cache_folder() / "secret")


class SecretError(GlassformerError):
    """A secret that strangers could guess. No message contains it."""


def chosen() -> str:
    """Returns $GLASSFORMER_SECRET; nothing where it is not set. Raises SecretError for one that
    is too short.
    """
    result = os.environ.get(SECRET, "")
    if result and len(result) < SHORTEST:
        raise SecretError(f"{SECRET} has {len(result)} characters: choose at least {SHORTEST} at random.")
    return result


def secret(path: Path) -> bytes:
    """Reads the secret from $GLASSFORMER_SECRET; else from the file, which is made where there is none, for
    this user's eyes only. Where that cannot be, a secret that lasts as long as this process: after a
    restart everybody is new. Raises SecretError for a chosen secret that is too short.
    """
    if configured := chosen():
        return hashlib.sha256(configured.encode("utf-8", "surrogateescape")).digest()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        try:
            fresh.touch(mode=0o600, exist_ok=False)
            fresh.write_bytes(secrets.token_bytes(32))
            os.link(fresh, path)  # whole or not at all, and never over another server's
        except FileExistsError:
            pass
        finally:
            fresh.unlink(missing_ok=True)
        stored = path.read_bytes()
        path.chmod(0o600)
    except OSError:
        stored = b""
    return stored if len(stored) == 32 else secrets.token_bytes(32)


def proxies() -> int:
    """Returns how many proxies stand before this server, by $GLASSFORMER_TRUST_PROXY: none unless it says so,
    one for `yes`. Entries of a header beyond them were written by strangers. Raises ConfigError for what
    is no answer.
    """
    wanted = os.environ.get(TRUST, "")
    answer = wanted.strip().lower()
    if answer in ("yes", "true", "on"):
        return 1
    if answer in ("", "no", "false", "off"):
        return 0
    if not (answer.isascii() and answer.isdigit() and len(answer) < 3):
        raise ConfigError(TRUST, wanted, "must be yes, no, or how many proxies are chained")
    return int(answer)


def address(peer: str | None, forwarded: str, trusted: int) -> str:
    """Returns the network address that limits count: the peer's, or, behind `trusted` proxies, what the
    outermost one of them wrote into X-Forwarded-For. IPv6 by its network of 64 bits, which one house has
    to itself.

    Empty where it is not known, and for this very machine: a proxy that nobody told of is no visitor. Where a
    proxy's word is no address the peer counts, whoever that is: nobody is unlimited by what he sends.

    >>> address("192.0.2.7", "198.51.100.9", 0), address("10.0.0.1", "1.2.3.4, 198.51.100.9:4711", 1)
    ('192.0.2.7', '198.51.100.9')
    >>> address("2001:db8:1:2:3:4:5:6", "", 0), address("127.0.0.1", "", 0), address("127.0.0.1", "?", 1)
    ('2001:db8:1:2::/64', '', '127.0.0.1')
    """
    hops = [part.strip() for part in forwarded[-2000:].split(",") if part.strip()] if trusted else []
    if hops and (named := _read(hops[-min(trusted, len(hops))])):
        return "" if named.is_loopback else _counted(named)
    direct = _read(peer or "")
    return "" if direct is None or (direct.is_loopback and not hops) else _counted(direct)


def _read(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as proxies write it, perhaps with a port, brackets, quotes or a zone; None for what is none.

    >>> _read("203.0.113.7:4711"), _read('"[2001:db8::1%eth0]:443"'), _read("unknown")
    (IPv4Address('203.0.113.7'), IPv6Address('2001:db8::1'), None)
    """
    bare = text.strip().strip('"')
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:  # more of them are an IPv6 address's own
        bare = bare.partition(":")[0]
    try:
        parsed = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    return (parsed.ipv4_mapped or parsed) if isinstance(parsed, ipaddress.IPv6Address) else parsed


def _counted(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    return str(ipaddress.ip_network((ip, 64), strict=False)) if ip.version == 6 else str(ip)
