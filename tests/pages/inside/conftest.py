from __future__ import annotations

import pytest

from ui import slow


@pytest.fixture
def measured_anew() -> None:
    """No result is kept from another test."""
    slow._server = slow.Jobs()
