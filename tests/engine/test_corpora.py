"""Texts: found, checked, split without overlap, and measured by predictors that have no network."""

from __future__ import annotations

import functools
import hashlib
import http.server
import math
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.data import corpora
from engine.data.corpus import Corpus, check_length
from engine.data.tokenizers import bpe
from engine.errors import CorpusError
from studies.tasks.text_statistics import baselines
from tests.engine.cases import for_each

LINES = "one two three four five six seven eight nine ten\n" * 8


def test_tiny_shakespeare(shakespeare: Corpus) -> None:
    assert hashlib.sha256(shakespeare.text.encode()).hexdigest() == corpora.SHAKESPEARE_SHA256
    assert (shakespeare.characters, shakespeare.vocab_size) == (1_115_394, 65)
    assert (len(shakespeare.train), len(shakespeare.validation)) == (1_003_854, 111_540)
    assert len(shakespeare.train) == corpora.SHAKESPEARE_TRAIN
    assert shakespeare.baselines["uniform"] == pytest.approx(4.174, abs=1e-3)
    assert shakespeare.baselines["bigram"] == pytest.approx(2.48, abs=0.03)
    assert shakespeare.baselines["trigram"] == pytest.approx(2.07, abs=0.005)
    assert corpora.default_name() == "shakespeare"


def test_python_needs_no_network() -> None:
    corpus = corpora.load("python")
    assert corpus.characters > 300_000
    assert 'The "if" statement' in corpus.text
    assert corpus.vocab_size < 200
    assert corpora.load("python").text == corpus.text
    corpus = corpora.from_text(LINES)
    assert corpus.tokenizer.decode(torch.cat((corpus.train, corpus.validation)).tolist()) == LINES
    assert len(corpus.train) == int(0.9 * len(LINES))
    assert corpus.train.dtype == corpus.validation.dtype == torch.int64


@given(st.text(min_size=20, max_size=400))
def test_any_text_of_twenty_characters_is_split_or_refused(text: str) -> None:
    try:
        corpus = corpora.from_text(text)
    except CorpusError as error:
        assert "at least" in str(error)
        return
    assert len(corpus.validation) >= 2
    assert len(corpus.train) > len(corpus.validation)
    ids = corpus.train.tolist() + corpus.validation.tolist()
    assert corpus.tokenizer.decode(ids) == text.replace("\r\n", "\n")
    assert all(math.isfinite(loss) and loss >= 0 for loss in corpus.baselines.values())


def test_refused_with_a_way_out() -> None:
    for text, tokenizer, why in (
        ("short", "char", "the text has 5 characters; at least 20 are needed"), ("", "char", "at least 20"),
        ("a" * 100, "char", "repeats a single character"), ("ab" * 12, "bpe:300", "smaller vocabulary"),
    ):  # fmt: skip
        with pytest.raises(CorpusError, match=why):
            corpora.from_text(text, tokenizer=tokenizer)
    swallowed = corpora.from_text(LINES, tokenizer="bpe:500")
    assert swallowed.vocab_size < 500, "no pairs are left"
    with pytest.raises(CorpusError, match="or a smaller vocabulary"):
        check_length(swallowed, 500)


@for_each("context", [8, 64, 500])
def test_it_says_how_many_characters_are_missing(context: int) -> None:
    """Following the advice is enough, and half of it is not much too much."""
    short = corpora.from_text("ab" * 12)
    if context == 8:
        check_length(short, context)
        return
    with pytest.raises(CorpusError) as caught:
        check_length(short, context)
    missing = int(str(caught.value).split("add about ")[1].split()[0])
    check_length(corpora.from_text("ab" * 12 + "c" * (missing + 1)), context)
    with pytest.raises(CorpusError):
        check_length(corpora.from_text("ab" * 12 + "c" * (missing - 2)), context)


def test_baselines_against_an_independent_count() -> None:
    corpus = corpora.from_text(LINES + "the end of it, at last")
    v, train, validation = corpus.vocab_size, corpus.train.tolist(), corpus.validation.tolist()
    single, pairs, firsts = Counter(train), Counter(pairwise(train)), Counter(train[:-1])
    unigram = [-math.log((single[t] + 1) / (len(train) + v)) for t in validation]
    bigram = [-math.log((pairs[a, b] + 1) / (firsts[a] + v)) for a, b in pairwise(validation)]
    assert corpus.baselines["uniform"] == pytest.approx(math.log(v))
    assert corpus.baselines["unigram"] == pytest.approx(sum(unigram) / len(unigram))
    assert corpus.baselines["bigram"] == pytest.approx(sum(bigram) / len(bigram))
    triples, firsts = Counter(zip(train, train[1:], train[2:], strict=False)), Counter(pairwise(train[:-1]))
    told = zip(validation, validation[1:], validation[2:], strict=False)
    trigram = [-math.log((triples[a, b, c] + 1) / (firsts[a, b] + v)) for a, b, c in told]
    assert corpus.baselines["trigram"] == pytest.approx(sum(trigram) / len(trigram))
    assert list(corpus.baselines) == ["uniform", "unigram", "bigram", "trigram"]
    bits = {name: nats / math.log(2) for name, nats in corpus.baselines.items()}
    assert (
        dict(baselines(corpus, bits=True)) == pytest.approx(bits)
        and dict(baselines(corpus)) == corpus.baselines
    )


def test_an_edited_or_missing_file_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path))
    (tmp_path / corpora.SHAKESPEARE_FILE).write_text("To be, or not to be")
    with pytest.raises(CorpusError, match="is not Tiny Shakespeare"):
        corpora.load("shakespeare")
    (tmp_path / corpora.SHAKESPEARE_FILE).unlink()
    monkeypatch.setattr(corpora, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(corpora, "SHAKESPEARE_URL", "http://127.0.0.1:9/input.txt")  # nobody listens there
    assert corpora.default_name() == "python"
    said = r"could not be downloaded .*\$GLASSFORMER_DATA, or use the corpus 'python'"
    with pytest.raises(CorpusError, match=said):
        corpora.load("shakespeare")


def test_a_download_is_checked_and_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real downloader against a local server: a right file is kept, a wrong one refused."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    (tmp_path / "input.txt").write_text(LINES)
    quiet = functools.partial(Quiet, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.delenv("GLASSFORMER_DATA", raising=False)
        monkeypatch.setattr(corpora, "cache_folder", lambda: tmp_path / "cache")
        monkeypatch.setattr(corpora, "SHAKESPEARE_URL", f"http://127.0.0.1:{server.server_port}/input.txt")
        with pytest.raises(CorpusError, match="could not be downloaded"):
            corpora.load("shakespeare")
        assert corpora.shakespeare_path() is None
        monkeypatch.setattr(corpora, "SHAKESPEARE_SHA256", hashlib.sha256(LINES.encode()).hexdigest())
        seen: list[tuple[int, int]] = []
        assert corpora.load("shakespeare", lambda done, total: seen.append((done, total))).text == LINES
        assert seen[-1] == (len(LINES), len(LINES))
        assert corpora.shakespeare_path() == tmp_path / "cache" / corpora.SHAKESPEARE_FILE
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


FOREIGN = "Straße für Vögel: 5 € & 🙂 日本語 naïve ¿qué?\n" * 12


@for_each("tokenizer", ["char", "byte", "bpe:257", "bpe:300"])
@for_each("text", [LINES, FOREIGN], ids=["ascii", "foreign"])
def test_every_tokenizer_has_the_same_two_parts(tokenizer: str, text: str) -> None:
    corpus, letters = corpora.from_text(text, tokenizer=tokenizer), corpora.from_text(text)
    assert corpus.cut == tokenizer
    for part in ("train", "validation"):
        ids, wanted = getattr(corpus, part), getattr(letters, part)
        assert corpus.tokenizer.decode(ids.tolist()) == letters.tokenizer.decode(wanted.tolist())
        assert int(corpus.token_characters[ids.numpy()].sum()) == len(wanted)


def test_bytes_are_encoded_alike_by_table_and_by_merging() -> None:
    corpus = corpora.from_text(FOREIGN, tokenizer="byte")
    assert corpus.tokenizer == bpe.train(FOREIGN, 256)
    assert [*corpus.train.tolist(), *corpus.validation.tolist()] == corpus.tokenizer.encode(FOREIGN)


def test_bpe_learns_nothing_from_the_validation_split() -> None:
    cut = int(len(LINES) * 0.9)
    blank = LINES[:cut] + " " * len(LINES[cut:])
    other = LINES[:cut] + "zq" * ((len(LINES) - cut) // 2)  # by far the most frequent pair, were it looked at
    one, two = (corpora.from_text(text, tokenizer="bpe:300") for text in (blank, other))
    assert one.tokenizer.to_dict() == two.tokenizer.to_dict()
    assert len(two.validation) >= len(other) - cut - 1


def test_baselines_of_pieces_are_bits_per_character() -> None:
    corpus = corpora.from_text(FOREIGN, tokenizer="bpe:300")
    ids, counts = corpus.validation.tolist(), Counter(corpus.train.tolist())
    characters = len(corpora.from_text(FOREIGN).validation)
    uniform = len(ids) * math.log2(corpus.vocab_size)
    unigram = -sum(math.log2((counts[i] + 1) / (len(corpus.train) + corpus.vocab_size)) for i in ids)
    assert corpus.baselines_in_bits["uniform"] == pytest.approx(uniform / characters)
    assert corpus.baselines_in_bits["unigram"] == pytest.approx(unigram / characters)
