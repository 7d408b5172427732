"""Keys that the server has signed, its secret, and the address behind a proxy."""

import stat
from pathlib import Path

import pytest

from engine.errors import ConfigError
from tests.engine.cases import for_each
from ui import identity
from ui.identity import SECRET, SecretError


@pytest.fixture(autouse=True)
def own_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "a secret of the tests")
    identity._secret.cache_clear()


def test_only_what_the_server_signed_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    cookie = identity.new_cookie()
    key = identity.key_in(cookie)
    assert key is not None and len(key) == 43 and cookie.startswith(f"{key}.")
    assert identity.key_in(identity.new_cookie()) != key
    swapped = ("B" if key[0] == "A" else "A") + key[1:]
    for forged in (None, "", key, f"{key}.{'A' * 43}", f"{swapped}{cookie[43:]}", cookie + "A", f" {cookie}"):
        assert identity.key_in(forged) is None, forged
    identity._secret.cache_clear()
    monkeypatch.setenv(SECRET, "the secret of another server")
    assert identity.key_in(cookie) is None


def test_a_secret_is_made_once_and_for_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SECRET)
    path = tmp_path / "new" / "secret"
    first = identity.secret(path)
    assert len(first) == 32 and identity.secret(path) == first == path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and [p.name for p in path.parent.iterdir()] == [
        "secret"
    ]


def test_without_a_place_for_it_the_secret_lasts_as_long_as_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SECRET)
    (tmp_path / "file").write_text("in the way")
    assert len(identity.secret(tmp_path / "file" / "secret")) == 32
    (tmp_path / "torn").write_bytes(b"short")
    assert identity.secret(tmp_path / "torn") != b"short", "what anybody could guess signs nothing"


def test_a_chosen_secret_is_shared_and_not_too_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert identity.secret(tmp_path / "a") == identity.secret(tmp_path / "b")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv(SECRET, "fifteen letters")
    with pytest.raises(SecretError, match="has 15 characters: choose at least 16"):
        identity.secret(tmp_path / "a")


@for_each("said, trusted", [("", 0), ("no", 0), ("0", 0), ("yes", 1), ("1", 1), ("2", 2), (" On ", 1)])
def test_a_proxy_is_trusted_when_told_to(said: str, trusted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(identity.TRUST, said)
    assert identity.proxies() == trusted


@for_each("said", ["-1", "²", "1.5", "192.0.2.1", "100", "maybe"])
def test_an_unclear_number_of_proxies_is_refused(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(identity.TRUST, said)
    with pytest.raises(ConfigError, match="must be yes, no, or how many proxies"):
        identity.proxies()


@for_each(
    "peer, forwarded, trusted, address",
    [
        ("192.0.2.7", "198.51.100.9", 0, "192.0.2.7"),  # a stranger writes what he likes
        ("10.0.0.1", "1.2.3.4, 198.51.100.9", 1, "198.51.100.9"),  # the proxy has added the last
        ("10.0.0.1", "1.2.3.4, 198.51.100.9, 10.0.0.2", 2, "198.51.100.9"),
        ("10.0.0.1", "198.51.100.9", 2, "198.51.100.9"),
        ("192.0.2.7", "", 1, "192.0.2.7"),
        ("::ffff:192.0.2.7", "", 0, "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "", 0, "2001:db8:1:2::/64"),
        ("127.0.0.1", "", 0, ""),
        (None, "", 0, ""),
        # as proxies write it
        ("10.0.0.1", "203.0.113.7:4711", 1, "203.0.113.7"),
        ("10.0.0.1", "[2001:db8:1:2::1]:443", 1, "2001:db8:1:2::/64"),
        ("10.0.0.1", "[2001:db8:1:2:3::1]", 1, "2001:db8:1:2::/64"),
        ("10.0.0.1", '"[2001:db8:1:2::1]:443"', 1, "2001:db8:1:2::/64"),
        ("10.0.0.1", "fe80::1%eth0", 1, "fe80::/64"),
        ("10.0.0.1", "[::ffff:203.0.113.7]:443", 1, "203.0.113.7"),
        ("10.0.0.1", "203.0.113.7, 127.0.0.1:80", 1, ""),
        # what is no address: the peer is counted, even this machine
        ("10.0.0.1", "unknown", 1, "10.0.0.1"),
        ("10.0.0.1", "203.0.113.7:4711:x", 1, "10.0.0.1"),
        ("10.0.0.1", "203.0.113.7, _hidden", 1, "10.0.0.1"),
        ("127.0.0.1", "unknown", 1, "127.0.0.1"),
        ("::1", "[", 1, "::/64"),
        (None, "unknown", 1, ""),
    ],
)
def test_addresses(peer: str | None, forwarded: str, trusted: int, address: str) -> None:
    assert identity.address(peer, forwarded, trusted) == address
