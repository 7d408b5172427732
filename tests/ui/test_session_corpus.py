"""A text that cannot be downloaded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.data import corpora
from engine.errors import CorpusError
from ui import memo, session


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """No text lies here, and there is no way to one: what was asked for."""
    asked: list[str] = []

    def download(_: object) -> Any:
        asked.append("shakespeare")
        raise CorpusError("it could not be downloaded")

    monkeypatch.delenv("GLASSFORMER_DATA", raising=False)
    monkeypatch.setattr(corpora, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(corpora, "_download", download)
    memo.clear()
    session.refusals.clear()
    yield asked
    memo.clear()
    session.refusals.clear()


def test_a_text_that_could_not_be_had_is_not_waited_for_by_every_page(
    nowhere: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cut in ("char", "char", "bpe512"):
        with pytest.raises(CorpusError, match="could not be downloaded"):
            session.corpus("shakespeare", cut)
    assert nowhere == ["shakespeare"]
    assert len(session.corpus("python").text) > 100_000, "what is here is read"
    text = b"To be or not to be.\n" * 40
    (tmp_path / corpora.SHAKESPEARE_FILE).write_bytes(text)
    monkeypatch.setattr(corpora, "SHAKESPEARE_SHA256", corpora.hashlib.sha256(text).hexdigest())
    assert session.corpus("shakespeare").text.startswith("To be"), "it was put there"
