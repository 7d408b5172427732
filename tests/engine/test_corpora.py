"""Texts: found, checked, split without overlap, and measured by predictors that have no network."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine import corpora
from engine.corpora import Corpus
from engine.errors import CorpusError

LINES = "one two three four five six seven eight nine ten\n" * 8


def test_tiny_shakespeare(shakespeare: Corpus) -> None:
    assert hashlib.sha256(shakespeare.text.encode()).hexdigest() == corpora.SHAKESPEARE_SHA256
    assert (shakespeare.characters, shakespeare.vocab_size) == (1_115_394, 65)
    assert (len(shakespeare.train), len(shakespeare.validation)) == (1_003_854, 111_540)
    assert shakespeare.baselines["uniform"] == pytest.approx(4.174, abs=1e-3)
    assert shakespeare.baselines["bigram"] == pytest.approx(2.48, abs=0.03)
    assert corpora.default_name() == "shakespeare"


def test_python_needs_no_network() -> None:
    corpus = corpora.load("python")
    assert corpus.characters > 300_000
    assert "The \"if\" statement" in corpus.text
    assert corpus.vocab_size < 200
    assert corpora.load("python").text == corpus.text


def test_the_two_parts_are_the_text() -> None:
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
    assert corpus.tokenizer.decode(corpus.train.tolist() + corpus.validation.tolist()) == text.replace("\r\n", "\n")
    assert all(math.isfinite(loss) and loss >= 0 for loss in corpus.baselines.values())


def test_texts_that_are_too_short() -> None:
    with pytest.raises(CorpusError, match="the text has 5 characters; at least 20 are needed"):
        corpora.from_text("short")
    with pytest.raises(CorpusError, match="repeats a single character"):
        corpora.from_text("a" * 100)
    with pytest.raises(CorpusError, match="at least 20"):
        corpora.from_text("")


@pytest.mark.parametrize("context", [8, 64, 500])
def test_it_says_how_many_characters_are_missing(context: int) -> None:
    """Following the advice is enough, and half of it is not much too much."""
    short = corpora.from_text("ab" * 12)
    if context == 8:
        corpora.check_length(short, context)
        return
    with pytest.raises(CorpusError) as caught:
        corpora.check_length(short, context)
    missing = int(str(caught.value).split("add about ")[1].split()[0])
    corpora.check_length(corpora.from_text("ab" * 12 + "c" * (missing + 1)), context)
    with pytest.raises(CorpusError):
        corpora.check_length(corpora.from_text("ab" * 12 + "c" * (missing - 2)), context)


def test_windows_line_ends_count_once() -> None:
    assert corpora.from_text(LINES.replace("\n", "\r\n")).text == LINES


def test_baselines_against_an_independent_count() -> None:
    corpus = corpora.from_text(LINES + "the end of it, at last")
    v, train, validation = corpus.vocab_size, corpus.train.tolist(), corpus.validation.tolist()
    single, pairs, firsts = Counter(train), Counter(pairwise(train)), Counter(train[:-1])
    unigram = [-math.log((single[t] + 1) / (len(train) + v)) for t in validation]
    bigram = [-math.log((pairs[a, b] + 1) / (firsts[a] + v)) for a, b in pairwise(validation)]
    assert corpus.baselines["uniform"] == pytest.approx(math.log(v))
    assert corpus.baselines["unigram"] == pytest.approx(sum(unigram) / len(unigram))
    assert corpus.baselines["bigram"] == pytest.approx(sum(bigram) / len(bigram))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(CorpusError, match="no corpus is called 'bible'; there are shakespeare, python"):
        corpora.load("bible")


def test_an_edited_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path))
    (tmp_path / corpora.SHAKESPEARE_FILE).write_text("To be, or not to be")
    with pytest.raises(CorpusError, match="is not Tiny Shakespeare"):
        corpora.load("shakespeare")


def test_without_file_or_network_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path))
    monkeypatch.setattr(corpora, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(corpora, "SHAKESPEARE_URL", "http://127.0.0.1:9/input.txt")  # nobody listens there
    assert corpora.default_name() == "python"
    with pytest.raises(CorpusError, match=r"could not be downloaded .*\$GLASSFORMER_DATA, or use the corpus 'python'"):
        corpora.load("shakespeare")


def test_a_download_is_checked_and_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real downloader against a local server: a right file is kept, a wrong one refused."""
    import functools
    import http.server
    import threading

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    (tmp_path / "input.txt").write_text(LINES)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
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
