"""Back to an address of the same page shows what a fresh session shows there, whatever was chosen since."""

import pytest

from tests.pages.browser_tab import Tab
from tests.pages.test_walks import CLASSIC, differences, still

pytestmark = pytest.mark.usefixtures("manager")
PAIRS = {
    "a fold of another view": (
        "attention?attention_view=heads&measure=true",
        "attention?attention_view=mask&measure=true",
    ),
    "a neuron": (
        "feedforward?feedforward_layer=1&feedforward_neuron=3",
        "feedforward?feedforward_layer=2&feedforward_neuron=7",
    ),
    "a switch that is drawn below": (
        "feedforward?measure=true&feedforward_norm=false",
        "feedforward?measure=true",
    ),
    "a patient's tests": (
        "bugs?bugs_view=patient&patient=2&patient_tests=future",
        "bugs?bugs_view=patient&patient=3",
    ),
    "a diagnosis that is chosen": (
        "bugs?bugs_view=patient&patient=2&patient_guess=first_block_only",
        "bugs?bugs_view=patient&patient=2",
    ),
    "a length of another model": (
        "parameters?parameters_view=memory&parameters_model=gpt2&parameters_length=256",
        "parameters?parameters_view=memory&parameters_model=nanogpt-192",
    ),
    "arrows of other tokens": (
        "positions?positions_view=rope&rope_topic=arrows&rope_query=3&rope_at=12-4-2&model=shakespeare-modern",
        "positions?positions_view=rope&rope_topic=arrows&rope_query=5&model=shakespeare-modern",
    ),
    "a step of another model": (
        "shapes?shapes_view=pass&shapes_step=5",
        "shapes?shapes_view=pass&shapes_step=9&model=shakespeare-modern",
    ),
    "letters of another sentence": (
        "families?families_view=three&families_show=live&live_text=a%20dog&live_clicked=2",
        "families?families_view=three&families_show=live",
    ),
    "how much of an example is left to the reader": (
        "shapes?shapes_view=hand&hand=true&shapes_hand_fill=row&shapes_q=1,2,0,1",
        "shapes?shapes_view=hand&hand=true",
    ),
    "other numbers of an example": (
        "tokens?tokens_view=bpe&hand=true&bpe_fill=all&bpe_seed=3",
        "tokens?tokens_view=bpe&hand=true&bpe_fill=number",
    ),
    "a step of a training": (
        "attention?attention_view=heads&model=timelapse&step=330",
        "attention?attention_view=heads&model=timelapse&step=1000",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_back_to_an_address_shows_what_it_says(name: str) -> None:
    one, other = (address if "model" in address else f"{address}&model={CLASSIC}" for address in PAIRS[name])
    tab = still(Tab(one))
    for address in (other, one):
        tab.visit(address)
        wrong = differences(still(tab).screen(), still(Tab(address)).screen())
        assert not wrong, "\n".join([address, *wrong])


def test_a_link_that_names_another_model_and_a_value_shows_both() -> None:
    tab = Tab("parameters?parameters_view=memory&parameters_model=gpt2&parameters_length=256")
    tab.menu("parameters", parameters_view="memory", parameters_model="nanogpt-192", parameters_length="64")
    assert tab.app.select_slider(key="parameters_length").value == 64
    assert not differences(tab.screen(), tab.reload().screen())
