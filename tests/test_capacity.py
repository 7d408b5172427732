"""The plan for a whole course in docs/hosting.md follows from what was measured of one server."""

import math
import re
from pathlib import Path

import pytest

from engine.service.profiles import PROFILES

pytestmark = pytest.mark.exhaustive

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "hosting.md").read_text("utf-8")
ENROLLED, MACHINE = 10_000, 4  # GB of one server's machine, as its first table says


def rows(name: str) -> dict[str, list[str]]:
    lines = PAGE.partition(f"<!-- {name} -->")[2].partition("<!-- end -->")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: row[1:] for row in cells[2:]}


MEASURED = {name: float(value.rstrip("%").replace(",", "")) for name, (value,) in rows("measured").items()}
EACH = MEASURED["people at once"]


def tabs(row: str) -> int:
    """Of how many tabs a row tells."""
    return int(re.search(r"(\d+) tabs", row)[1])  # type: ignore[index]


def of_a_tab(start: str) -> float:
    """MB: the one row that begins so, for one tab."""
    (row,) = (name for name in MEASURED if name.startswith(start))
    return MEASURED[row] / tabs(row)


def minute() -> float:
    """MB sent to one tab in a minute."""
    return of_a_tab("sent in 2 minutes") / 2


@pytest.mark.parametrize("row", rows("plan"))
def test_each_row_of_the_plan_follows(row: str) -> None:
    said = [int(cell.replace(",", "")) for cell in rows("plan")[row]]
    share = 1.0 if row.startswith("all") else int(row.split()[0]) / 100
    people = round(ENROLLED * share)
    servers = math.ceil(people / EACH)
    assert said == [
        people,
        servers,
        round(servers * MEASURED["cores"]),
        round(servers * MEASURED["trainings at once"]),
        servers * MACHINE,
        round(people * minute() * 8 / 60),
    ]


def test_what_one_person_costs_follows() -> None:
    asks = EACH / MEASURED["answers a second"]
    holds, sent = of_a_tab("more with"), minute()
    assert f"every {asks:.1f} s, holds {holds:.1f} MB and is sent {sent:.2f} MB a minute" in PAGE


def test_a_server_fits_its_machine() -> None:
    beside = MEASURED["memory of a process that trains, MB"] + MEASURED["memory of the warm spare, MB"]
    own = MEASURED["memory of the server after a tour of all pages, MB"] + of_a_tab("more with") * EACH
    assert f"A server for {EACH:.0f} holds {own + beside:,.0f} MB" in PAGE
    assert own + beside < MACHINE * 1000 and f"give it {MACHINE} GB" in PAGE
    assert f"| {MACHINE} GB, {MEASURED['cores']:.0f} cores | `GLASSFORMER_PROFILE=hosted`" in PAGE
    assert PROFILES["hosted"].public
