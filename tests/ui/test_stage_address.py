"""The address for the room and its code, read back square by square."""

import re

import pytest
import segno

from runs import profiles
from runs.rooms import Rooms
from ui import session
from ui.stage import address, draw
from ui.stage.address import code, for_phones

SEEN = "http://localhost:8501/attention?attention_view=mask&text=a%20b"


@pytest.mark.parametrize("host", ["localhost", "127.9.9.9", "[::1]", "app.localhost"])
def test_a_computers_name_for_itself_becomes_its_address(host: str) -> None:
    found = for_phones(SEEN.replace("localhost", host), local="192.0.2.7")
    assert found.address == "http://192.0.2.7:8501/attention?attention_view=mask&text=a%20b"
    assert "192.0.2.7" in found.note
    other = "https://glass.example.org/base/attention?x=1"
    assert for_phones(other, local="192.0.2.7") == (other, "")


def test_what_no_phone_can_reach_is_said() -> None:
    assert for_phones(SEEN, listens="127.0.0.1", local="192.0.2.7").address == ""
    assert "listens at 127.0.0.1" in for_phones(SEEN, listens="127.0.0.1", local="192.0.2.7").note
    assert for_phones(SEEN, listens="0.0.0.0", local="192.0.2.7").address
    assert for_phones(SEEN, local="") == ("", "This computer is not on a network, so phones cannot reach it.")


@pytest.mark.parametrize("profile, told", [("local", True), ("hosted", False), ("small", False)])
@pytest.mark.parametrize("host", ["localhost:8501", "[::1]"])
def test_strangers_are_not_told_where_the_server_lies_in_its_own_network(
    host: str, profile: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = Rooms()
    rooms.ask("me", "One?", ["a", "b"])
    monkeypatch.setenv(profiles.VARIABLE, profile)
    monkeypatch.setattr(address, "local_address", lambda: "10.1.2.3")
    monkeypatch.setattr(draw.config, "get_option", lambda name: {"server.address": "0.0.0.0"}[name])
    monkeypatch.setattr(session, "rooms", lambda: rooms)
    monkeypatch.setattr(session, "owner", lambda: "me")
    held = {draw.KEY: {"address": f"http://{host}/attention"}}
    monkeypatch.setattr(draw.st, "session_state", held)
    found = draw._told()
    assert found["code"]["address"].startswith("http://10.1.2.3") == told
    assert found["room"]["address"].startswith("http://10.1.2.3") == told
    assert ("10.1.2.3" in repr(found)) == told
    assert ("works only on this computer" in found["code"]["note"]) != told
    held[draw.KEY] = {"address": "https://glass.example.org/base/attention?x=1"}
    seen = draw._told()
    assert seen["code"]["address"] == "https://glass.example.org/base/attention?x=1"
    assert seen["room"]["address"] == f"https://glass.example.org/base/room?id={found['room']['room']}"


@pytest.mark.parametrize(
    "seen", [None, 3, "", "javascript:alert(1)", "http://", "http://a:b/", "http://[", "h" * 10**5]
)
def test_what_is_no_web_address(seen: object) -> None:
    assert for_phones(seen, local="192.0.2.7") == ("", "")


def squares(found: dict[str, str | int]) -> list[list[int]]:
    size = int(found["size"])
    rows = [[0] * size for _ in range(size)]
    for x, y, wide in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", str(found["path"])):
        for at in range(int(x), int(x) + int(wide)):
            rows[int(y)][at] += 1
    return rows


def test_the_code_says_the_whole_address() -> None:
    rows = squares(code(SEEN))
    assert max(map(max, rows)) == 1, "no square is painted twice"
    for edge in (rows[:4], rows[-4:], [row[:4] for row in rows], [row[-4:] for row in rows]):
        assert not any(map(any, edge)), "four quiet squares around"
    whole = [[int(square) for square in row] for row in segno.make_qr(SEEN, error="l").matrix]
    assert [row[4:-4] for row in rows[4:-4]] == whole
