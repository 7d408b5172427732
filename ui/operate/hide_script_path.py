"""Hides the server's folder: Streamlit sends it to every browser, and strangers need not know it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession

# Streamlit's own: the first message of every run. Its browser shows the path where somebody deploys the app.
_INSIDE = AppSession._create_new_session_message


def hide() -> None:
    """Makes Streamlit send the file's name, not its path."""
    AppSession._create_new_session_message = _message  # type: ignore[method-assign]


def _message(self: AppSession, *arguments: Any, **named: Any) -> ForwardMsg:
    message = _INSIDE(self, *arguments, **named)
    message.new_session.main_script_path = Path(message.new_session.main_script_path).name
    return message
