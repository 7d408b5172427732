"""The address for the room and its code, read back square by square."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import segno

from engine.service import profiles
from engine.service.rooms import Rooms
from ui import state
from ui.stage import address, draw
from ui.stage.address import MAX_ADDRESS, code, for_phones

SEEN = "http://localhost:8501/attention?attention_view=mask&text=a%20b"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "app.localhost"])
def test_a_computers_name_for_itself_becomes_its_address(host: str) -> None:
    found = for_phones(SEEN.replace("localhost", host), own="192.0.2.7")
    assert found.address == "http://192.0.2.7:8501/attention?attention_view=mask&text=a%20b"
    assert "192.0.2.7" in found.note


def test_any_other_address_stays() -> None:
    seen = "https://glass.example.org/base/attention?x=1"
    assert for_phones(seen, own="192.0.2.7") == (seen, "")


def test_what_no_phone_can_reach_is_said() -> None:
    assert for_phones(SEEN, listens="127.0.0.1", own="192.0.2.7").address == ""
    assert "listens at 127.0.0.1" in for_phones(SEEN, listens="127.0.0.1", own="192.0.2.7").note
    assert for_phones(SEEN, listens="0.0.0.0", own="192.0.2.7").address
    assert for_phones(SEEN, own="") == ("", "This computer is in no network: phones cannot reach it.")


@pytest.mark.parametrize("profile, told", [("local", True), ("hosted", False), ("small", False)])
@pytest.mark.parametrize("host", ["localhost:8501", "127.0.0.1", "[::1]", "a.localhost"])
def test_strangers_are_not_told_where_the_server_lies_in_its_own_network(
    host: str, profile: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = Rooms()
    rooms.ask("me", "One?", ["a", "b"])
    monkeypatch.setenv(profiles.VARIABLE, profile)
    monkeypatch.setattr(address, "local_address", lambda: "10.1.2.3")
    monkeypatch.setattr(state, "rooms", lambda: rooms)
    monkeypatch.setattr(state, "owner", lambda: "me")
    held = {draw.KEY: {"address": f"http://{host}/attention"}}
    monkeypatch.setattr(draw.st, "session_state", held)
    found = draw._told()
    assert found["code"]["address"].startswith("http://10.1.2.3") == told
    assert found["room"]["address"].startswith("http://10.1.2.3") == told
    assert ("10.1.2.3" in repr(found)) == told
    assert ("leads to this computer alone" in found["code"]["note"]) != told
    held[draw.KEY] = {"address": "https://glass.example.org/base/attention?x=1"}
    seen = draw._told()
    assert seen["code"]["address"] == "https://glass.example.org/base/attention?x=1"
    assert seen["room"]["address"] == f"https://glass.example.org/base/room?id={found['room']['room']}"


@pytest.mark.parametrize(
    "seen",
    [None, 3, "", "javascript:alert(1)", "file:///etc", "http://", "http://a:b/", "http://[", "h" * 10**5],
)
def test_what_is_no_web_address(seen: object) -> None:
    assert for_phones(seen, own="192.0.2.7") == ("", "")


def squares(found: dict[str, str | int]) -> list[list[int]]:
    """The squares that an SVG path paints: an independent reading of it."""
    size = int(found["size"])
    rows = [[0] * size for _ in range(size)]
    for x, y, wide in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", str(found["path"])):
        for at in range(int(x), int(x) + int(wide)):
            rows[int(y)][at] += 1
    return rows


def test_the_code_has_its_three_corners_and_a_quiet_edge() -> None:
    rows = squares(code(SEEN))
    size = len(rows)
    assert (size - 8 - 17) % 4 == 0  # 17 + 4 v squares a side, and four quiet ones around
    assert max(map(max, rows)) == 1
    finder = ["1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111"]
    for top, left in ((4, 4), (4, size - 11), (size - 11, 4)):
        assert ["".join(map(str, row[left : left + 7])) for row in rows[top : top + 7]] == finder
    for edge in (rows[:4], rows[-4:], [row[:4] for row in rows], [row[-4:] for row in rows]):
        assert not any(map(any, edge))
    assert [rows[10][x] for x in range(12, size - 12)] == [1 - x % 2 for x in range(12, size - 12)]  # timing


def test_the_code_says_the_whole_address() -> None:
    whole = [[int(square) for square in row] for row in segno.make_qr(SEEN, error="l").matrix]
    assert [row[4:-4] for row in squares(code(SEEN))[4:-4]] == whole


def test_another_address_is_another_code() -> None:
    assert code(SEEN) != code(SEEN + "1") and code(SEEN) == code(SEEN)
    assert code("http://a/" + "x" * MAX_ADDRESS) == {}


def test_this_computers_address_is_none_of_its_own_names() -> None:
    assert address.local_address() not in ("127.0.0.1", "0.0.0.0", "localhost")


def test_the_room_needs_no_torch() -> None:
    script = "import engine.service.rooms, ui.stage.address, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
