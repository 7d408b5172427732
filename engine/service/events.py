"""What happens on a server, for who runs it: one line of JSON an event, where a log was asked for. Nothing
here tells who somebody is, what they wrote, or the whole of an id that opens a run.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

LOG = logging.getLogger("glassformer.events")
LOG.setLevel(logging.INFO)
LOG.addHandler(logging.NullHandler())
LOG.propagate = False  # at home nobody asked for it: the terminal shows what goes wrong, not what happens
ID = 6  # characters of an id: enough to follow a run through a log, too few to open it


def note(event: str, **fields: str | int | float | bool) -> None:
    """Says that something happened."""
    LOG.info(event, extra={"fields": fields})


def brief(name: str) -> str:
    """The beginning of an id.

    >>> brief("tW4EYAYvIGkxb3-_2qtlxw")
    'tW4EYA'
    """
    return name[:ID]


class Lines(logging.Formatter):
    """A record as one line of JSON: time (UTC), level, event, then what there is to say about it."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "event": record.getMessage()}
        if record.name != LOG.name:
            line["logger"] = record.name
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line | getattr(record, "fields", {}), ensure_ascii=False, default=str)
