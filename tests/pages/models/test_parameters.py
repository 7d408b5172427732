"""The Parameters page: counts written out here, figures, and what a model costs."""

import math
import time

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, TrainConfig
from pages.models.parameters import whole_model
from pages.models.parameters.change import GROUPS
from pages.models.parameters.choice import ALL, plain
from runs.state import RunSpec
from studies.costs import whole_text as studied
from studies.costs.block import BlockParameters, block, gate_paid
from studies.costs.ledger import ledger
from studies.costs.shares import where
from studies.costs.since_2023 import CARDS
from studies.costs.whole_text import Timing
from tests.pages import helpers
from ui.text.numbers import flop, gigabytes

pytestmark = pytest.mark.usefixtures("manager")


def opened(**query: str) -> AppTest:
    asked = {f"parameters_{name}": value for name, value in query.items()}
    return helpers.opened("models/parameters", **asked, **helpers.FOLDS)


def sentences(page: AppTest) -> str:
    numbers = [f"{label}: {value}" for label, value in helpers.metrics(page).items()]
    return " | ".join([helpers.said(page), *numbers])


@pytest.mark.parametrize("name", ["fast", "gpt3-175b", "t5-base", "bert-base"])
def test_a_preset_is_counted_with_its_source(name):
    page = opened(model=name)
    preset = ALL[name]
    assert f"**{ledger(preset.model, preset.encoder).total:,} parameters**" in sentences(page)
    assert preset.trainable or preset.source in sentences(page)


def test_it_opens_on_gpt2_and_says_where_the_parameters_are(drawn):
    page = opened()
    said = sentences(page)
    assert "**124,439,808 parameters**: 85,054,464 in the 12 blocks (68.3%), 39,385,344 before" in said
    assert "**66.6% of the blocks' parameters" in said
    assert "Embedding, positions and output make up 31.7% of the model" in said
    assert "Tying saves: 38,597,376" in said and "117M in the paper" in said
    assert "That is 23.7% of the untied model" in said  # 38,597,376 of 163,037,184
    assert "Twice the context: +786,432" in said and "One KV head for all (MQA): −12,993,024" in said
    assert "then takes 1,536 numbers in the KV cache (now 18,432)." in said
    assert "One KV head per query head (MHA): ±0" in said and "This model already does that." in said
    assert page.query_params["parameters_model"] in ("gpt2", ["gpt2"])
    table = page.dataframe[0].value
    assert table["parameters"].sum() == 124_439_808
    assert table["share"].sum() == pytest.approx(1)
    assert table["share"][0] == pytest.approx(38_597_376 / 124_439_808)
    bars = dict(
        zip(drawn["parameters_bars"].traces[0]["y"], drawn["parameters_bars"].traces[0]["x"], strict=True)
    )
    assert bars["embedding"] == 38_597_376 and sum(bars.values()) == 124_439_808
    assert drawn["parameters_treemap"].traces[0]["values"][0] == 124_439_808
    assert "embedding 31.0%, positions 0.6%" in drawn["parameters_bars"].alt


def test_untying_and_sharing_keys_change_the_count():
    page = opened(model="llama2-70b")
    assert f"(MHA): +{80 * 2 * 8192 * 56 * 128:,}" in sentences(page)
    page.slider(key="parameters_n_kv_heads").set_value(64).run()
    assert f"**{68_976_648_192 + 80 * 2 * 8192 * 56 * 128:,} parameters**" in sentences(page)
    assert "`n_kv_heads` 8 → 64" in sentences(page)
    page.selectbox(key="parameters_model").select("gpt2").run()
    assert (
        "**124,439,808 parameters**" in sentences(page)
        and "it would have 163M" in sentences(page)
        and "Changed:" not in sentences(page)
    )  # the other model's own fields are in the controls
    page.toggle(key="parameters_tie_embeddings").set_value(False).run()
    assert "**163,037,184 parameters**" in sentences(page)
    assert "Tying would save: 38,597,376" in sentences(page)


def test_every_field_has_a_control_and_a_place():
    placed = [field for group in GROUPS.values() for field in group]
    assert sorted(placed) == sorted(ModelConfig.__dataclass_fields__)
    page = opened(model="mini")
    keys = {e.key for kind in (page.slider, page.number_input, page.selectbox, page.toggle) for e in kind}
    assert {f"parameters_{field}" for field in placed} <= keys


def test_a_run_of_mine_and_one_that_went_away(manager):
    config = ModelConfig(vocab_size=31, d_model=100, n_heads=5)
    manager.start(RunSpec(config, TrainConfig(), "shakespeare"), "this-browser")
    page = opened(model="run-run-0")
    assert f"**{ledger(config).total:,} parameters**" in sentences(page)
    gone = opened(model="run-gone")
    assert "There is no such model here" in sentences(gone)
    assert "**124,439,808 parameters**" in sentences(gone)


def test_two_models_and_their_differences(drawn):
    page = opened(scope="two", other="bert-base", model="gpt2")
    table = page.dataframe[0].value.set_index("component")
    assert table.loc["all"].tolist()[:3] == [124_439_808, 109_482_240, 109_482_240 - 124_439_808]
    assert table.loc["all", "ratio"] == "0.88×" and table.loc["pooler", "ratio"] == "–"
    assert table.loc["embedding", "difference"] == table.loc["embedding", "BERT base"] - 38_597_376
    assert table.loc["pooler", "BERT base"] == 590_592
    said = sentences(page)
    assert "GPT\\-2 small is **1.14 times as large** as BERT base: 124M parameters against 109M." in said
    assert "66.6% and 66.6% of the blocks' parameters" in said
    shares = {trace["name"]: trace["x"] for trace in drawn["parameters_comparison"].traces}
    assert shares["pooler"] == pytest.approx([0, 590_592 / 109_482_240])
    fields = page.dataframe[1].value.set_index("field")
    assert fields.loc["causal"].tolist() == ["True", "False"] and "d_model" not in fields.index
    page.button_group(key="parameters_scale").set_value("Counts").run()
    assert not page.exception
    counts = {trace["name"]: trace["x"] for trace in drawn["parameters_comparison"].traces}
    assert counts["pooler"] == [0, 590_592]
    page.selectbox(key="parameters_other").select("gpt2").run()
    assert "All fields are the same." in sentences(page) and "the same number of parameters" in sentences(
        page
    )


def test_the_crossover_and_six_n(drawn):
    page = opened(view="flops", model="gpt2")
    said = sentences(page)
    assert "Above **T = 6,703**, beyond its context of 1,024" in said
    assert "28,348,416 parameters **whatever T is**" in said
    assert "6 N, the rule of thumb: 747 MFLOP" in said and "87% of the count" in said
    flops = ledger(ALL["gpt2"].model).flops(1024)
    matrices = 12 * 12 * 768**2 + 50257 * 768
    assert f"the {matrices:,} that multiply a token: {2 * matrices / flops.forward:.0%}." in said
    assert (
        f"{flop(1024 * flops.forward)} for a forward pass, {flop(3 * 1024 * flops.forward)} to train" in said
    )
    assert f"misses this share, here {flops.scores / flops.forward:.1%}" in said
    assert f"Share of scores and weighted sums: {flops.scores / flops.forward:.1%}" in said
    lines = {trace.get("name"): trace for trace in drawn["parameters_flops"].traces}
    at = lines["scores and weighted sums"]["x"].index(1024)
    assert lines["scores and weighted sums"]["y"][at] == flops.scores == 12 * 2 * 2 * 1024 * 768
    assert lines["everything else"]["y"][at] == flops.forward - flops.scores == 2 * matrices
    (meeting,) = (trace for trace in drawn["parameters_flops"].traces if trace["mode"] == "markers")
    assert meeting["x"] == [6703] and meeting["y"] == [ledger(ALL["gpt2"].model).flops(6703).scores]
    page.select_slider(key="parameters_length").set_value(16).run()
    assert "100% of the count" in sentences(page)
    scores = 2 * 2 * 16 * 12 * 768
    assert (
        f"In a text of 16 tokens, each token costs **{(2 * matrices + scores) / 1e6:.0f} MFLOP** in the"
        f" forward pass, {scores / (2 * matrices + scores):.1%} of that for attention scores and weighted sums; beyond **6,703"
        " tokens** it"
    ) in sentences(page)
    products = page.dataframe[0].value
    assert products["FLOPs per token"].sum() == ledger(ALL["gpt2"].model).flops(16).forward


def whole_text(**query: str) -> AppTest:
    """The page once attention has been timed: until then a bar stands there."""
    page = opened(view="flops", **query)
    for _ in range(200):
        if "four times the attention" in sentences(page) or "window makes" in sentences(page):
            return page
        time.sleep(0.1)
        page.run()
    raise AssertionError("attention was never timed")


def test_attention_of_a_whole_text_is_drawn_in_bytes_and_in_seconds_of_this_server(drawn, monkeypatch):
    monkeypatch.setattr(studied, "_seconds", lambda mixer, length: 1e-6 * mixer.n_heads * length**2 / 12)
    page = opened(view="flops", model="gpt2", length="2048", part="text")
    said = sentences(page)
    table = pd.DataFrame(drawn["parameters_whole_text"].table).set_index("tokens")
    assert (
        table.loc[1024, "bytes"] == 12 * 1024 * 1024 * 4 and table.loc[2048, "bytes"] == 4 * 12 * 1024**2 * 4
    )
    assert (
        table.loc[1024, "measured"] == "True" and table.loc[2048, "measured"] == "False"
    )  # 64 MB at most are timed
    assert table.loc[1024, "seconds"] == pytest.approx(1.048576)
    assert table.loc[2048, "seconds"] == pytest.approx(4 * 1.048576)
    assert (
        "attention weights take **192 MB**" in said
        and "**4 s** on this server (extrapolated from 1,024)" in said
    )
    assert "From 512 to 1,024 tokens they took 4.0 times as long." in said


def test_what_was_not_timed_is_not_said_to_be():
    said = sentences(whole_text(model="gpt2", length="16", part="text"))
    assert "is not measured here" in said and "on this server." not in said.split("Measured:")[0]
    timed = Timing({256: 1.0, 512: 4.0}, window=1024)
    assert [timed.at(n) for n in (256, 1024, 2048, 4096)] == [1.0, 16.0, 32.0, 64.0]
    assert Timing({256: 1.0, 512: 4.0}).at(2048) == 64.0


def test_a_window_makes_the_attention_of_a_text_linear():
    said = sentences(whole_text(model="mistral-7b", length="32768", part="text"))
    assert (
        "at 32,768 tokens, each compared with at most 4,096, one layer's attention weights take **16 GB**, and"
        in said
    )
    assert "without the window **128 GB**" in said


def test_what_acts_once_a_text_is_counted_once():
    said = sentences(opened(view="flops", model="bert-base", length="512"))
    assert "W_pool acts once per text, on its first token only: 1,179,648 FLOP" in said  # 2 * 768 * 768
    whole = 512 * ledger(ALL["bert-base"].model).flops(512).forward + 2 * 768**2
    assert f"{flop(whole)} for a forward pass, {flop(3 * whole)} to train" in said
    assert "acts once per text" not in sentences(opened(view="flops", model="gpt2"))


def test_what_grows_with_the_text_is_written_as_it_is_counted():
    for name, formula in (
        ("gpt2", "$2\\cdot 2\\cdot T\\cdot H\\cdot d_{head}\\cdot L$ = 37,748,736"),
        ("t5-base", "three times (encoder, decoder"),
    ):
        said = sentences(opened(view="flops", model=name))
        assert formula in said
    assert f"{3 * 2 * 2 * 512 * 12 * 64 * 12:,}; the rest does not" in said  # of all three attentions
    assert "84,934,656 parameters **whatever T is**" in said
    said = sentences(opened(view="flops", model="classic", mixer="mean"))
    assert f"$2\\cdot T\\cdot H\\cdot d_{{head}}\\cdot L$ = {2 * 64 * 128 * 4:,}" in said
    assert "This mixer has no parameters" in said


def test_memory_of_llama_and_what_it_fits_into(drawn):
    page = opened(view="memory", model="llama2-7b")
    said = sentences(page)
    assert "**KV cache at T = 4,096: 2 GB**" in said and "2 · 32 · 32 · 128 · 4,096 · 1 · 2" in said
    weights = 6_738_415_616
    assert "**phone, 8 GB**: runs in int4; training would need" in said
    assert "**laptop, 16 GB; GPU, 24 GB**: runs in bfloat16" in said
    assert "**GPU, 80 GB**: runs in float32; training would" in said
    per_token = 2 * 32 * 32 * 128 * 2
    assert f"takes {gigabytes(per_token)} in bfloat16, so at **{2 * weights / per_token:,.0f} tok" in said
    assert f"as large as the weights, {gigabytes(2 * weights)}. Grouped keys (GQA) reduce it." in said
    cache = drawn["parameters_cache"]
    lines = {trace["name"]: trace for trace in cache.traces}
    at = lines["KV cache"]["x"].index(4096)
    assert lines["KV cache"]["y"][at] == 2 and lines["one KV head (MQA)"]["y"][at] == 2 / 32
    assert lines["weights + KV cache"]["y"][at] == pytest.approx(2 + 2 * weights / 2**30)
    assert "one KV head each (MHA)" not in lines  # it is what this model has
    memory = plain("llama2-7b").ledger.memory("bfloat16", 1, 4096)
    bars = {trace["name"]: trace["x"] for trace in drawn["parameters_memory"].traces}
    assert bars["weights"] == pytest.approx([2 * weights / 2**30] * 2)
    assert bars["AdamW moments"] == pytest.approx([0, 8 * weights / 2**30])
    assert bars["KV cache"] == [2, 0]
    (fits,) = page.table
    row = fits.value.loc["laptop, 16 GB"]
    assert row["weights"] == f"✓  {gigabytes(2 * weights)}"
    assert row["training"] == f"✗  {gigabytes(memory.training)}"
    assert row["with KV cache, T = 4,096"] == f"✓  {gigabytes(2 * weights + 2**31)}"
    page.select_slider(key="parameters_batch").set_value(64).run()
    said = sentences(page)
    assert "**KV cache at T = 4,096: 128 GB**" in said
    needed = (2 * weights + 128 * 2**30) / 2**30
    assert "To write 64 texts of 4,096 tokens in bfloat16, LLaMA" in said and f"**{needed:.3g} GB**" in said
    trained = sum(trace["x"][1] for trace in drawn["parameters_memory"].traces)
    assert f"Training on a batch of that size takes **{trained / 1024:.3g} TB**." in said
    assert "its weights fit in float32, but not with this KV cache" in sentences(page)
    for dtype in ("float32", "int4"):
        page.button_group(key="parameters_dtype").set_value(dtype).run()
        assert not page.exception and ("Models are not trained in" in sentences(page)) == (dtype != "float32")


def test_heads_sizes_and_budgets_stand_in_a_fold():
    page = opened(view="flops")
    said = sentences(page)
    assert "**No: 16 heads cost 94.4 MFLOP per token, 1 head 94.4 MFLOP.**" in said
    assert "50,304 rows would, at the cost of 36,096 parameters" in said
    assert "**2.49B tokens**" in said  # 20 for each of 124,439,808
    heads, sizes, laws = (table.value for table in page.table)
    assert list(heads.index) == ["1", "2", "4", "8", "16"] and len(set(heads.iloc[:, 1])) == 1
    assert sizes.iloc[0].tolist() == ["50,257", "1", "no; 50,304 would be"]
    assert laws.loc["Hoffmann et al. 2022"].tolist() == ["× 3.2", "× 3.2"]
    assert " fits." in sentences(opened(view="flops", model="pythia-70m"))


def test_by_hand_is_four_products_and_what_they_leave_out():
    """Of LLaMA-2 7B: no bias anywhere, a gated network, two matrices at the ends."""
    products = 32 * (4 * 4_096**2 + 3 * 4_096 * 11_008) + 2 * 32_000 * 4_096
    total = products + (2 * 32 + 1) * 4_096
    said = sentences(opened(model="llama2-7b"))
    assert f"terms account for **{products:,}** of the {total:,} parameters of LLaMA" in said.replace(
        "\\", ""
    )
    assert ", or >99.9%; the rest are biases" in said


@pytest.mark.parametrize("name", ["gpt2", "t5-base", "bert-base", "modern"])
def test_areas_add_up(name):
    counted = plain(name).ledger
    (trace,) = whole_model.treemap(counted, "model").data
    nodes = dict(zip(trace["ids"], zip(trace["parents"], trace["values"], strict=True), strict=True))
    assert nodes["model"] == ("", counted.total)
    for node, (_, value) in nodes.items():
        below = [v for parent, v in nodes.values() if parent == node]
        assert not below or sum(below) == value
    assert len(trace["ids"]) == len(set(trace["ids"]))
    for note, value in zip(trace["hovertext"], trace["values"], strict=True):
        factors = note.replace("<br>", "").replace(",", "").rpartition(" = ")[2].split("·")
        assert not note or math.prod(map(int, factors)) == value, note


def test_one_block_is_mostly_its_feed_forward_network(drawn):
    page = opened(scope="block", model="classic", d_model="256", d_ff="768", n_heads="4", ffn="gelu")
    paid = gate_paid(256, 3)
    biased = BlockParameters(4 * 256**2 + 4 * 256, 2 * 256 * 768 + 768 + 256, 4 * 256)  # the model's own
    counts = (biased, paid.plain, paid.gated, paid.full)
    for trace, part in zip(
        drawn["parameters_block"].traces, ("attention", "feedforward", "norm"), strict=True
    ):
        assert trace["x"] == [getattr(row, part) for row in counts]
        assert trace["customdata"] == pytest.approx([getattr(row, part) / row.total for row in counts])
    words = sentences(page)
    assert (
        f"**{biased.feedforward / biased.total:.1%}** of the {biased.total:,} parameters of a block" in words
    )
    assert "3 times as wide as the stream" in words
    models = page.dataframe[0].value.set_index("model")
    gpt2 = 12 * 768**2 + 4 * 768 + 4 * 768 + 4 * 768 + 768  # matrices, norms, biases
    assert models.loc["GPT-2 small (published)", "block"] == gpt2
    assert models.loc["LLaMA-2 7B (published)", "matrices"] == 3
    assert "= 393,216. **Three of 2·d:**" in words and "≈ 393,216; ±0 from rounding" in words
    assert "half as much again: 589,824" in words
    assert page.table[-1].value.loc["total", "parameters"] == f"{biased.total:,}"
    plain, gated, marks = drawn["parameters_shares"].traces
    for trace, kind in ((plain, "gelu"), (gated, "swiglu")):
        blocks = [block(256, round(r * 256), kind) for r in trace["x"]]
        assert trace["y"] == pytest.approx([one.feedforward / one.total for one in blocks])
    assert marks["x"] == pytest.approx([4, 8 / 3]) and marks["y"][1] == pytest.approx(marks["y"][0], abs=2e-3)
    assert marks["y"][0] == pytest.approx(8 * 256**2 / (12 * 256**2 + 1024))


def test_blocks_of_every_kind_are_counted():
    """Of an encoder-decoder, one of the encoder's; a gated network's plain twin is 1.5 times as wide."""
    said = sentences(opened(scope="block", model="llama2-7b"))
    block = 4 * 4_096**2 + 3 * 4_096 * 11_008 + 2 * 4_096
    assert f"of the {block:,} parameters" in said and "$3 \\cdot 2.69" in said
    encoder = 4 * 512**2 + 2 * 512 * 2_048 + 2_048 + 512 + 4 * 512
    assert f"of the {encoder:,} parameters" in sentences(opened(scope="block", model="transformer-base"))
    assert "no feed-forward network" in sentences(opened(scope="block", ffn="none"))


def test_what_texts_count_otherwise_is_counted():
    lab, (vocab, width) = ledger(ALL["lab"].model), (100_000, 10_000)
    assert f"come to {lab.total:,}." in whole_model.TEXT["texts"] and lab.total == 813_440
    assert f"{2 * vocab / (11 * width):.1f} layers for" in whole_model.TEXT["texts"]


def test_queries_and_keys_are_not_taken_for_one_another() -> None:
    """LLaMA-2 70B: 64 heads of 128 are as wide as the stream, 8 key-value heads an eighth of it."""
    choice = plain("llama2-70b")
    said = whole_model.in_the_blocks(choice, where(choice.ledger))
    assert "Here $d_{ff}$ is 3.5·d, the queries are 1·d wide and the keys 0.125·d." in said


def test_a_control_of_the_view_leaves_the_bar_alone():
    """Streamlit runs a control's own fragment again: for the view's, that must not be the one of the bar."""
    page = opened(view="flops")
    metadata = page.session_state._state._state._new_widget_state.widget_metadata.values()
    runs_again = {each.id.rpartition("-")[2]: each.fragment_id for each in metadata}
    bar, view = runs_again["parameters_model"], runs_again["parameters_length"]
    assert bar and view and bar != view
    assert {runs_again[f"parameters_{name}"] for name in ("n_layers", "d_model", "ffn")} == {bar}


def test_a_card_since_2023_is_counted_beside_the_chosen_model(drawn):
    page = opened(scope="since", model="llama2-7b", card="gpt-oss-20b")
    assert "A token meets **17.3% of gpt\\-oss\\-20b's parameters**: 3.61B of 20.9B." in sentences(page)
    whole, met = (
        dict(zip(trace["y"], trace["x"], strict=True)) for trace in drawn["parameters_cards"].traces[1:]
    )
    assert whole["DeepSeek-V3"] == 671_026_419_200 and met["LLaMA-2 7B (above)"] == 6_738_415_616
    assert met["gpt-oss-20b"] == 3_608_310_144 and len(met) == len(CARDS) + 1
    table = page.dataframe[0].value.set_index("model")
    assert table.loc["gpt-oss-20b", "layers"] == "12× GQA, window 128, 12× GQA"
    rows = page.dataframe[1].value
    assert sum(int(count.replace(",", "")) for count in rows["parameters"]) == 20_914_757_184
    page = opened(scope="since", measure="cached", card="gpt-oss-20b", length="4096", model="llama2-7b")
    each = 12 * 2 * 8 * 64 * 2 * (128 + 4096) // 4096
    assert f"caches **{each:,} bytes per token** at T = 4,096. 12 of its 24 layers look back" in sentences(
        page
    )
    cached = dict(zip(*(drawn["parameters_cards"].traces[0][axis] for axis in "yx"), strict=True))
    assert cached["DeepSeek-V3"] == 70_272 and cached["LLaMA-2 7B (above)"] == 2 * 2 * 32 * 4096


@pytest.mark.parametrize("card, says", [
    ("deepseek-v3", "of all 128 heads"), ("gemma3-27b", "52 of its 62 layers look back over 1,024"),
    ("qwen3-next-80b-a3b", "Only 12 of its 48 layers"), ("qwen3-30b-a3b", "in groups"),
])  # fmt: skip
def test_a_card_says_why_its_cache_is_small(card, says):
    assert says in sentences(opened(scope="since", measure="cached", card=card))
    assert "as much as the matrices of a dense model of" in sentences(
        opened(scope="since", measure="worked", card=card)
    )
