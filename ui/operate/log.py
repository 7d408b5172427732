"""The log of a hosted server, as lines of JSON on its standard error: `GLASSFORMER_LOG=json`."""

from __future__ import annotations

import logging
import os
import sys

from engine.errors import ConfigError
from engine.service.events import LOG, Lines

VARIABLE = "GLASSFORMER_LOG"
OTHERS = ("streamlit", "uvicorn")  # whose loggers have handlers of their own


def wanted() -> bool:
    """True if $GLASSFORMER_LOG enables the log. Raises ConfigError for an invalid value."""
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "json"):
        raise ConfigError(VARIABLE, value, "must be json, or not set")
    return value == "json"


def arrange() -> None:
    """Sets up the log by $GLASSFORMER_LOG; does nothing where it is not set. Raises ConfigError for an
    invalid value.
    """
    if not wanted() or any(handler.name == VARIABLE for handler in LOG.handlers):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.name = VARIABLE
    handler.setFormatter(Lines())
    LOG.addHandler(handler)
    logging.getLogger().addHandler(handler)  # what libraries and our own modules warn of
    for name, logger in logging.root.manager.loggerDict.items():
        if name.partition(".")[0] in OTHERS and isinstance(logger, logging.Logger):
            for inner in logger.handlers:
                inner.setFormatter(Lines())
