"""What the tests of Home share: opening it on a text, and reading what its running map is sent."""

import base64
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from tests.pages import helpers

CLASSIC = "shakespeare-classic"


def home(text: str | None = None, model: str = CLASSIC, **query: str) -> AppTest:
    asked = query if text is None else query | {"text": text}
    return helpers.opened("app.py", model=model, **asked)


def sent(app: AppTest, component: str = "livemap") -> dict[str, Any]:
    return helpers.sent(app, f"glassformer_{component}")


def array(text: str, kind: Any, *shape: int) -> np.ndarray:
    """Packed numbers, read as the browser reads them."""
    return np.frombuffer(base64.b64decode(text), kind).reshape(*shape, -1)
