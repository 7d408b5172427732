"""Widget states that no browser would send, over a real websocket, the same every time: no page shows a trace."""

import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.visitor import Visitor
from tests.aside import aside
from tests.browser.server import ROOT, serve
from tests.pages.rooms import views
from ui.site import built

pytestmark = pytest.mark.exhaustive

PAGES = [entry.url for entry in built()]
TIMES = 3  # a page at the least: each of its views once
WORDS = ("", "nobody", "9" * 400, "-1", "nan", "\u202e\x00", "<script>", "💥" * 50)
# Of what figures say
PARTS = ("at", "chosen", "clicked", "moved", "step", "turn", "did", "ask", "settings", "held")
FITS = {"slider": 4, "number_input": 1, "checkbox": 3, "selectbox": 0, "button_group": 5, "multiselect": 5,
        "text_input": 0, "bidi_component": 7}  # fmt: skip
NUMBERS = (float("nan"), float("inf"), -float("inf"), -1.0, 1e300, 0.5, 1e18)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("home")) as found:
        yield found


def forged(name: str, control: str, chance: random.Random) -> WidgetState:
    state = WidgetState(id=name)
    kind = FITS.get(control, 0) if chance.random() < 0.5 else chance.randrange(8)
    if kind == 0:
        state.string_value = chance.choice(WORDS)
    elif kind == 1:
        state.double_value = chance.choice(NUMBERS)
    elif kind == 2:
        state.int_value = chance.choice((-1, 2**53, -(2**62), 7))
    elif kind == 3:
        state.bool_value = chance.random() < 0.5
    elif kind == 4:
        state.double_array_value.data.extend(chance.choices(NUMBERS, k=chance.randrange(4)))
    elif kind == 5:
        state.string_array_value.data.extend(chance.choices(WORDS, k=chance.randrange(4)))
    elif kind == 6:
        state.int_array_value.data.extend([-1, 10**6][: chance.randrange(3)])
    else:
        state.json_value = chance.choice(
            [json.dumps(dict.fromkeys(PARTS, value)) for value in (None, [], {}, -1, 1e300, "9999,9")]
            + ["{", "null", "[]", '{"selection": {"points": [3]}}']
        )
    return state


@asynccontextmanager
async def visiting(url: str, page: str, query: str = "", seed: int = 0) -> AsyncIterator[Visitor]:
    visitor = Visitor(url, seed)
    await visitor.enter()
    try:
        await visitor.visit(page, query)
        assert visitor.page.controls, page
        yield visitor
    finally:
        await visitor.leave()


async def traces(visitor: Visitor) -> list[str]:
    await visitor._ask()
    # nor is it called a fault of ours: a control that holds what it cannot is as it was at first
    foul = (str(ROOT), "Traceback", "fault is ours")
    told = [said for said in visitor.page.said if any(each in said for each in foul)]
    return [*map(str, visitor.page.exceptions), *told]


async def attack(url: str, page: str) -> list[str]:
    wrong: list[str] = []
    key, ids = views(page)
    asked = [f"{key}={view}" for view in ids] or [""]
    for seed in range(max(TIMES, len(asked))):
        chance = random.Random(f"{page} {seed}")
        async with visiting(url, page, asked[seed % len(asked)], seed) as visitor:
            for name, (kind, _) in sorted(visitor.page.controls.items()):
                if chance.random() < 0.5:
                    visitor._values[name] = forged(name, kind, chance)
            wrong += [f"{page} {seed}: {each}" for each in await traces(visitor)]
    return wrong + await next_who_comes(url, page)


async def next_who_comes(url: str, page: str) -> list[str]:
    async with visiting(url, page) as other:
        return [f"{page}, the next who came: {said}" for said in other.page.said if "fault is ours" in said]


LARGE = {
    "deep": lambda name: WidgetState(id=name, json_value='{"at": ' + "[" * 20_000 + "]" * 20_000 + "}"),
    "nested": lambda name: WidgetState(id=name, json_value='{"at":' * 900 + "1" + "}" * 900),
    "long": lambda name: WidgetState(id=name, json_value=json.dumps(dict.fromkeys(PARTS, "ab " * 2_000))),
    "endless": lambda name: WidgetState(id=name, json_value='{"at": ' + "9" * 5_000 + ', "step": 1e999}'),
}
SENSELESS = (
    BackMsg(clear_cache=True),
    BackMsg(set_run_on_save=True),
    BackMsg(load_git_info=True),
    BackMsg(debug_disconnect_websocket=True),
    BackMsg(debug_shutdown_runtime=True),
    BackMsg(stop_script=True),
    BackMsg(),
)


async def overload(url: str, page: str) -> list[str]:
    """Values as large as a message may be, thousands for controls that there are not, orders that are not a
    visitor's to give.
    """
    wrong: list[str] = []
    for seed, (what, large) in enumerate(LARGE.items()):
        async with visiting(url, page, seed=seed) as visitor:
            names = sorted(visitor.page.controls)
            for name in random.Random(seed).sample(names, min(40, len(names))):
                visitor._values[name] = large(name)
            for number in range(3_000):
                name = f"$$ID-{number:032x}-none"
                visitor._values[name] = WidgetState(id=name, json_value="{}")
            wrong += [f"{page} {what}: {each}" for each in await traces(visitor)]
            for order in SENSELESS:
                await visitor._socket.send(order.SerializeToString())
    return wrong + await next_who_comes(url, page)


@pytest.mark.parametrize("page", PAGES)
def test_no_forged_state_leads_to_a_trace(url: str, page: str) -> None:
    assert aside(attack(url, page)) == []


@pytest.mark.parametrize("page", ["", "train", "generation", "parameters"])
def test_nor_does_a_large_one(url: str, page: str) -> None:
    assert aside(overload(url, page)) == []
