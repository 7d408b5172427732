"""The bar of the pages that look inside: which model, which step, which text. On a page of its own that shows
what it was given.
"""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from engine import checkpoints
from engine.config import ModelConfig, TrainConfig
from engine.data.progress import Progress
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import PretrainedError
from engine.model import build
from engine.training.records import Step
from runs import profiles
from runs.history import SMOOTH, HistoryLog, losses_at
from runs.state import RunSpec
from studies.tasks.all import TASKS
from studies.weights.pretrained import sources
from tests.pages.bar_page import given, opened, said
from tests.pages.helpers import chosen, clicked, in_address, lacking
from tests.pages.real_model import REAL, carried
from tests.pages.stage import StageManager, view_of
from tests.studies.pretrained.gguf_files import FACTS, WORDS, a_llama, plain, written
from ui import fetching, memo, models
from ui.fit_text import FIRST_TEXT, MAX_TEXT, TASK_EXAMPLES, read, show_token
from ui.model_bar import Subject
from ui.models import FIRST_MODEL
from ui.site import ROOT
from ui.training_step import NEWEST

pytestmark = pytest.mark.usefixtures("manager")

TINY = ModelConfig(vocab_size=90, context=16, d_model=16, n_layers=1, n_heads=2)
STEPS = (0, 10, 20, 40)


def put(manager: StageManager, run: str, steps: tuple[int, ...] = STEPS, status: str = "finished") -> str:
    """A run among the manager's; the name its model has in the bar. Runs are named after their test: the app
    caches models by their names.
    """
    spec = RunSpec(TINY, TrainConfig(steps=40), "text", "abc " * 20, name=f"my {run}")
    manager.views[run] = view_of(spec, run, status, 40, snapshots=steps)
    return f"run-{run}"


# What a sentence about a shipped model's use may name, and the configuration that this is
GPT2 = {"position": "learned", "norm": "layernorm", "wiring": "pre", "ffn": "gelu", "tie_embeddings": True}
NAMED = {
    "GPT-2-style": GPT2, "RoPE": {"position": "rope"}, "RMSNorm": {"norm": "rmsnorm"}, "SwiGLU": {"ffn": "swiglu"}
}  # fmt: skip


@pytest.mark.parametrize("name", models.SHIPPED)
def test_what_a_shipped_model_is_good_for_is_what_it_is_built_of(name):
    use, config = models.good_for(name), checkpoints.load(ROOT / "checkpoints" / name).config.to_dict()
    named = [values for term, values in NAMED.items() if term in use]
    assert named and all(values.items() <= config.items() for values in named)


def test_every_model_of_the_list_says_what_it_is_good_for(manager):
    names = models.offered(put(manager, "used"))
    assert len(names) > 20 and [name for name in names if not models.good_for(name)] == []


def test_it_opens_on_the_first_shipped_model_and_the_first_example():
    page = opened()
    got = given(page)
    assert (got["key"], got["text"], got["corpus"]) == ([FIRST_MODEL, NEWEST], FIRST_TEXT, "shakespeare")
    assert "".join(got["labels"]) == FIRST_TEXT.replace(" ", "␣").replace("\n", "⏎")
    assert got["shape"] == [len(FIRST_TEXT), 65] and got["vocabulary"] == 65
    assert in_address(page, "model") == FIRST_MODEL and in_address(page, "step") is None
    assert "818,048 parameters · 4 blocks × 4 heads, width 128 · Tiny Shakespeare" in said(page)
    stored = json.loads((ROOT / "checkpoints" / FIRST_MODEL / "metrics.json").read_text())
    loss = stored["validation_loss"]
    assert f"validation loss {loss:.3f} (perplexity {math.exp(loss):.1f})" in said(page)


def test_a_task_s_model_is_offered_problems_of_its_task():
    page = opened(model="task-copy")
    offered = [one.replace("\\", "") for one in page.button_group(key="text_example").options]
    assert len(offered) == TASK_EXAMPLES and given(page)["text"].strip() == offered[0] != offered[-1]
    assert all(TASKS["copy"].right(one) for one in offered), "each with its right answer"
    page.button_group(key="text_example").set_value(offered[-1]).run()
    assert given(page)["text"].strip() == offered[-1]
    page.selectbox(key="subject_model").select(FIRST_MODEL).run()
    assert given(page)["text"] == FIRST_TEXT, "nobody typed it: it does not stay with another model"


@pytest.mark.parametrize(
    ("model", "why"), [("gpt2", "no such model"), ("<script>", ""), ("run-gone", "no longer on this server")]
)
def test_a_model_that_is_not_there_falls_back(model, why):
    page = opened(model=model)
    assert given(page)["key"][0] == FIRST_MODEL and in_address(page, "model") == FIRST_MODEL
    assert why in said(page) and "<script>" not in said(page)


def test_the_newest_snapshot_is_shown_first(manager):
    name = put(manager, "newest-first")
    page = opened(model=name)
    got = given(page)
    assert (got["key"], got["title"], got["corpus"]) == ([name, 40], "Your run: my newest-first", None)
    assert got["shape"] == [16, 90] and in_address(page, "step") is None
    assert "newest: step 40 of 40" in said(page) and ("model", "newest-first", 40) in manager.asked


@pytest.mark.parametrize(("asked", "shown"), [("0", 0), ("14", 10), ("16", 20), ("999999", 40)])
def test_the_step_in_the_url_chooses_the_nearest_snapshot_that_is_kept(manager, asked, shown):
    name = put(manager, f"step-{asked}")
    page = opened(model=name, step=asked)
    assert given(page)["key"] == [name, shown] and in_address(page, "step") == str(shown)
    assert f"step {shown} of 40" in said(page) and "newest" not in said(page)


def test_the_newest_is_followed_while_it_trains(manager):
    name = put(manager, "live", (0, 10), status="running")
    page = opened(model=name)
    assert given(page)["key"] == [name, 10]
    manager.change("live", snapshots=(0, 10, 20))
    assert given(page.run())["key"] == [name, 20]
    assert ("watch", "live") in manager.asked


def test_a_run_that_is_removed_while_one_looks_gives_way(manager):
    young = opened(model=put(manager, "too-young", ()))
    assert given(young)["key"][0] == FIRST_MODEL, "it has no snapshots yet"
    manager.mine = False  # its link is enough
    name = put(manager, "removed")
    page = opened(model=name)
    assert given(page)["key"] == [name, 40]
    del manager.views["removed"]
    assert given(page.run())["key"][0] == FIRST_MODEL


def test_reading_by_hand():
    tokenizer = CharTokenizer("abc ")
    assert read("abc", tokenizer, 5) == (tuple(tokenizer.encode("abc")), "abc", [])
    ids, text, notes = read("a\r\nb!", tokenizer, 5)
    assert (text, len(ids), len(notes)) == ("ab", 2, 1) and "⏎ !" in notes[0]
    ids, text, notes = read("abcabc", tokenizer, 4)
    assert text == "abca" and "6 tokens; the first 4" in notes[0]
    ids, text, notes = read("", tokenizer, 4)
    assert ids and tokenizer.decode(list(ids)) == text and "The text is empty" in notes[0]
    ids, text, notes = read("xyz", CharTokenizer("01"), 4)
    assert text == "01" and "has none of these characters" in notes[0]


def test_what_a_text_in_the_address_lacks_is_said():
    page = opened(text="Hé llo*w {}")
    assert given(page)["text"] == "H llow "
    for words in ("alphabet of 65 characters does not have", "é", "left out"):
        assert words in said(page)
    for count, cut in ((128, False), (129, True)):
        page = opened(text=("abcd " * 500)[:count])
        assert len(given(page)["ids"]) == 128 and ("the first 128 are used" in said(page)) == cut
    assert "![a](" not in said(opened(text="![a](//e.org/a.png)"))


def test_tokens_are_shown_with_their_blanks():
    assert [show_token(t) for t in (" ", "\n", "\t", "", "a b", "\ud800")] == ["␣", "⏎", "⇥", "∅", "a␣b", "?"]


def curve(*losses: float):
    log = HistoryLog()
    for step, loss in enumerate(losses, 1):
        log.add(Step(step, loss, 1.0, 1e-3, step, float(step)))
    return log.view()


def test_losses_are_the_measured_ones_of_the_batches_before():
    losses = [5.0 - 0.1 * i for i in range(40)]
    found = losses_at([0, 1, 2, SMOOTH, SMOOTH + 5, 40, 99], curve(*losses))
    last = [np.mean(losses[5 : SMOOTH + 5]), *[np.mean(losses[40 - SMOOTH :])] * 2]
    expected = [losses[0], losses[0], np.mean(losses[:2]), np.mean(losses[:SMOOTH]), *last]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert losses_at([0, 10], curve()) == [None, None] and losses_at([], curve(1.0)) == []
    assert losses_at([2, 3], curve(3.0, float("nan"), 1.0)) == [None, None]
    assert losses_at([1], curve(3.0, float("inf"))) == [3.0]


def test_models_of_runs_are_kept_within_a_size(monkeypatch):
    read = []

    def after(name, step):
        read.append(step)
        return SimpleNamespace(memory=lambda: 20 << 20)  # so 48 MB hold two

    monkeypatch.setattr(models, "model_after", after)
    monkeypatch.setenv(profiles.VARIABLE, "small")
    memo.clear()
    for step in (1, 2, 1, 3, 1, 2):
        models._snapshot("run-a", step)
    assert read == [1, 2, 3, 2] and 40 << 20 <= memo.LOADED.held.bytes <= memo.LOADED.held.limit == 48 << 20
    models._snapshot("run-b", 2)
    assert read[4:] == [2], "another run's is another model"
    memo.clear()


def test_a_text_is_never_cut_inside_a_character():
    from engine.data.tokenizers import bpe

    tokenizer = bpe.train("abc", 256)
    ids, text, _ = read("a€b" * 4, tokenizer, 8)
    assert text == "a€ba" and tokenizer.decode(ids) == text, "two bytes of the second euro sign are left out"
    assert len(read("€", tokenizer, 2)[0]) == 2, "there is nothing before it"


def test_bytes_that_are_no_character_are_shown_as_bytes():
    from engine.data.tokenizers import bpe

    tokenizer = bpe.train("the the", 258)
    model = build(ModelConfig(vocab_size=258, context=8, d_model=8, n_layers=1, n_heads=1))
    looked = Subject(("m", 0), "", model, tokenizer, "€ t", tuple(tokenizer.encode("€ t")), None)
    assert looked.labels == ["⟨E2⟩", "⟨82⟩", "⟨AC⟩", "␣", "t"] and len(set(looked.vocabulary)) == 258
    assert not any("\ufffd" in word or "\0" in word for word in looked.vocabulary)


def test_a_long_text_is_cut_and_its_length_is_said():
    page = chosen(opened(), "text", "a" * 10_000)
    assert len(page.text_area(key="text").value) == MAX_TEXT
    assert "has 10,000 characters; the first 2,000" in said(page)
    chosen(page, "text", "short")
    assert given(page)["text"] == "short" and "characters; the first" not in said(page)
    page = opened(text="b" * 3000)
    assert "has 3,000 characters; the first 2,000" in said(page) and set(given(page)["text"]) == {"b"}
    page.query_params["text"] = "ROMEO:\nBut, soft!"  # as by Back, or a link inside the app
    assert given(page.run())["text"] == "ROMEO:\nBut, soft!" and "3,000" not in said(page)


@carried
def test_a_published_model_comes_with_its_facts_and_a_text_it_can_read():
    page = opened(model=REAL)
    got = given(page)
    assert got["labels"] == ["The", "␣capital", "␣of", "␣France", "␣is"] and got["shape"][1] == 49_152
    assert not lacking(
        said(page),
        "134,515,008 parameters",
        "30 blocks × 9 heads, width 576",
        "Apache 2.0",
        "does not follow instructions",
        "5.74 bits per weight",  # of Q4_1 at 5 bits, and an embedding of Q8_0 at 8.5
    )
    chosen(page, "subject_model", FIRST_MODEL)
    box = page.text_area(key="text")
    assert box.value == FIRST_TEXT, "a text that nobody chose follows the kind of model"
    box.input("An unbelievable 🙂").run()
    chosen(page, "subject_model", REAL)
    assert given(page)["labels"] == ["An", "␣unbelie", "vable", "␣🙂"]


@pytest.mark.parametrize("profile", ["local", "hosted"])
def test_more_models_are_fetched_or_opened_only_where_the_server_allows(monkeypatch, profile):
    monkeypatch.setenv("GLASSFORMER_PROFILE", profile)
    monkeypatch.setattr(sources, "find", lambda *_: None)
    page = opened(model=REAL)
    assert given(page)["key"][0] == FIRST_MODEL and "SmolLM2 is not on this server" in said(page)
    labels = [button.label for button in page.button]
    assert labels.count("Download") == (6 if profile == "local" else 0)
    assert bool(page.text_input) is (profile == "local")


@pytest.fixture
def small_llama(monkeypatch, tmp_path):
    """A file of a model, written."""
    _, tensors = a_llama()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return written(tmp_path / "small.gguf", FACTS | WORDS, {name: plain(x) for name, x in tensors.items()})


def test_a_failed_download_is_a_sentence_and_what_was_fetched_is_looked_into(
    monkeypatch, tmp_path, small_llama
):
    place = tmp_path / "gpt2.gguf"

    def fetch(name: str, largest: int):
        yield Progress(0, 0)
        return small_llama.rename(place)

    def none(name: str, largest: int):
        yield Progress(0, 0)
        raise PretrainedError(f"{name} could not be fetched")

    monkeypatch.setattr(fetching, "download", none)
    monkeypatch.setattr(sources, "_places", lambda name, path: iter([place] if name == "gpt2" else []))
    page = clicked(opened(), "fetch_gpt2_button")
    assert [error.value for error in page.error] == ["gpt2 could not be fetched"]
    assert given(page)["key"][0] == FIRST_MODEL
    monkeypatch.setattr(fetching, "download", fetch)
    assert given(clicked(page, "fetch_gpt2_button"))["key"][0] == "pretrained-gpt2"
    assert "fetch_gpt2_button" not in [button.key for button in page.button]


def test_a_file_of_this_computer(monkeypatch, tmp_path, small_llama):
    name = f"file-{small_llama}"
    page = opened()
    page.text_input(key="model_path").input(str(tmp_path / "absent.gguf")).run()
    assert "no such file" in said(page) and given(page)["key"][0] == FIRST_MODEL
    page.text_input(key="model_path").input(f' "{small_llama}" ').run()
    assert given(page)["key"][0] == name == in_address(page, "model")
    assert "small.gguf, from a file" in page.selectbox(key="subject_model").options
    assert given(opened(model=name))["key"][0] == name
    for absurd in (
        "file-",
        "file-/" + "x" * 5000,
        "file-\0",
        "file-..",
        "pretrained-../small",
        "pretrained-",
    ):
        assert given(opened(model=absurd))["key"][0] == FIRST_MODEL
    monkeypatch.setenv("GLASSFORMER_PROFILE", "hosted")
    assert given(opened(model=name))["key"][0] == FIRST_MODEL


def test_a_file_that_is_no_model_ends_the_page_with_a_sentence(monkeypatch, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + b"\xff" * 40)
    page = opened(model=f"file-{tmp_path / 'bad.gguf'}")
    assert len(page.error) == 1 and "is not a GGUF file" in page.error[0].value and not page.exception
