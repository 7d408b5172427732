"""A forged request does not send the server into the world."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from streamlit import net_util
from streamlit.web.server.server_util import is_url_from_allowed_origins

from ui.operate import alone


def test_another_sites_origin_is_refused_without_asking_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def world(url: str, **_: Any) -> Any:
        asked.append(url)
        raise requests.ConnectionError

    monkeypatch.setattr(requests, "get", world)
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)
    monkeypatch.setattr(net_util, "_external_ip", None)
    assert not is_url_from_allowed_origins("http://elsewhere.example")
    assert asked, "Streamlit asks nobody any more: ui/operate/alone.py may go"
    asked.clear()
    alone.know_no_address()
    for origin in ("http://elsewhere.example", "http://None", "null", ""):
        assert not is_url_from_allowed_origins(origin)
    assert is_url_from_allowed_origins("http://localhost:8501") and not asked
