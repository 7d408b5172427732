"""Event log for the operator: a line of JSON an event, which identifies no person, text or run."""

from __future__ import annotations

import json
import logging
import re
import traceback
from datetime import UTC, datetime
from typing import Any

LOG = logging.getLogger("glassformer.events")
LOG.setLevel(logging.INFO)
LOG.addHandler(logging.NullHandler())
LOG.propagate = False  # at home nobody asked for it: the terminal shows what goes wrong, not what happens
ID_LENGTH = 6  # characters of an id: enough to follow a run through a log, too few to open it
SAID = 200  # characters of what Python says was wrong
# as Python quotes, a letter before it or none, up to its end or, where the message was cut, all the rest
_QUOTED = re.compile(
    r"""(?:(?<!\w)|(?<=\b[bBrRuUfF]))(?:'(?:[^'\\]|\\.|'(?=\w))*(?:'|\\?\Z)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)|“[^”]*(?:”|\Z))""",
    re.DOTALL,
)
_FRAME = re.compile(r'[ |+-]*File "')  # in a trace, a line of code and where it stands


def note(event: str, **fields: str | int | float | bool) -> None:
    """Says that something happened."""
    LOG.info(event, extra={"fields": fields})


def unquoted(message: str) -> str:
    """Removes quoted values from an error message: somebody may have typed them.

    >>> unquoted("KeyError: 'Anna'"), unquoted("it can't be: 'Anna', 'B'")
    ('KeyError: …', "it can't be: …, …")
    >>> unquoted("no b'Anna'"), unquoted('"Anna"s'), unquoted("'Anna's cat' is"), unquoted("cut: 'Ann")
    ('no b…', '…s', '… is', 'cut: …')
    """
    found = _QUOTED.sub("…", message[: 20 * SAID])
    return found if len(found) <= SAID else found[:SAID] + "…\n"


class Lines(logging.Formatter):
    """A record as one line of JSON: time (UTC), level, event, then what there is to say about it."""

    def formatException(self, ei: Any) -> str:
        """Returns the trace, with its lines of code whole, and of what was wrong no quotations."""
        parts = traceback.TracebackException(*ei).format()
        return "".join(part if _FRAME.match(part) else unquoted(part) for part in parts).rstrip("\n")

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "event": record.getMessage()}
        if record.name != LOG.name:
            line["logger"] = record.name
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line | getattr(record, "fields", {}), ensure_ascii=False, default=str)
