"""The log of a server: each event short and in one line, and few of a kind; of a hosted one as lines of JSON
on its standard error, with `GLASSFORMER_LOG=json`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Hashable

from engine.errors import ConfigError
from runs.events import LOG, Lines

VARIABLE = "GLASSFORMER_LOG"
OTHERS = ("streamlit", "uvicorn", "websockets")  # whose loggers have handlers of their own
LONGEST = 500  # characters of an event
MOST, PERIOD = 10, 60.0  # lines of a kind within so many seconds


class Brief(logging.Filter):
    """Makes an event short and one line, and leaves out what has been said MOST times within PERIOD seconds:
    strangers cause the events of a server, and some quote what they sent. A kind is the place in the code, of
    a trace that where it was raised, and what it is `about`; the next that is told says how many were not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._told: dict[Hashable, tuple[float, int]] = {}  # kind -> since when, how often

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "brief", False):  # a record passes the handlers of its logger and of the root
            return True
        left_out = 0 if record.name == LOG.name else self._left_out(_kind(record))
        if left_out is None:
            return False
        event = flattened(record.getMessage()) + (f" ({left_out:,} more were not logged)" if left_out else "")
        record.msg, record.args, record.brief = event, (), True
        return True

    def _left_out(self, kind: Hashable) -> int | None:
        """Counts an event. Returns how many of its kind were left out before it, None where it is itself."""
        now = time.monotonic()
        with self._lock:
            since, count = self._told.get(kind, (now, 0))
            over = now - since >= PERIOD
            self._told[kind] = (now, 1) if over else (since, count + 1)
            if over:
                return max(0, count - MOST)
        return None if count >= MOST else 0


def flattened(text: str) -> str:
    """Returns a text in one line of at most LONGEST characters, with control characters as Python writes
    them.

    >>> flattened("a fragment\\n[ERROR] forged\\x1b[2J")
    'a fragment\\\\n[ERROR] forged\\\\x1b[2J'
    """
    cut = text[:LONGEST] + ("…" if len(text) > LONGEST else "")
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in cut)


def _kind(record: logging.LogRecord) -> Hashable:
    error, trace = (record.exc_info or (None, None, None))[1:]
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised = None if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return record.name, record.lineno, getattr(record, "about", None), type(error), raised


_brief = Brief()


def wanted() -> bool:
    """True if $GLASSFORMER_LOG enables the log. Raises ConfigError for an invalid value."""
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "json"):
        raise ConfigError(VARIABLE, value, "must be json, or not set")
    return value == "json"


def arrange() -> None:
    """Makes every event brief, and sets up the log by $GLASSFORMER_LOG. Raises ConfigError for an invalid
    value.
    """
    if logging.lastResort is not None:  # of loggers that nobody gave a handler
        logging.lastResort.addFilter(_brief)
    others = [
        inner
        for name, logger in logging.root.manager.loggerDict.items()
        if name.partition(".")[0] in OTHERS and isinstance(logger, logging.Logger)
        for inner in logger.handlers
    ]
    for inner in others:
        inner.addFilter(_brief)
    if not wanted() or any(handler.name == VARIABLE for handler in LOG.handlers):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.name = VARIABLE
    handler.addFilter(_brief)
    handler.setFormatter(Lines())
    LOG.addHandler(handler)
    logging.getLogger().addHandler(handler)  # what libraries and our own modules warn of
    for inner in others:
        inner.setFormatter(Lines())
