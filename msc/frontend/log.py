"""MindSpore's `log`: messages to the standard error. `GLOG_v` sets the lowest level: 0 debug ... 4 critical."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

__all__ = ["critical", "debug", "error", "get_level", "get_log_config", "info", "warning"]

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
_FORMAT = "[%(levelname)s] ME(%(process)d:%(thread)d,%(processName)s):%(asctime)s [%(pathname)s:%(lineno)d] %(message)s"


class _StandardError(logging.Handler):
    """Writes to what is the standard error when a message comes."""

    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr is not None:
            print(self.format(record), file=sys.stderr)


def _made() -> logging.Logger:
    logger = logging.getLogger("msc")
    if not logger.handlers:
        handler = _StandardError()
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.addHandler(handler)
        logger.propagate = False
    logger.setLevel(_LEVELS[int(get_level())])
    return logger


def get_level() -> str:
    """The lowest level that is written, as a digit."""
    given = os.environ.get("GLOG_v", "2")  # noqa: SIM112
    return given if given in ("0", "1", "2", "3", "4") else "2"


def get_log_config() -> dict[str, str]:
    """The settings: the level, and that messages go to the standard error."""
    return {"GLOG_v": get_level(), "GLOG_logtostderr": "1"}


def _at_user(message: object, args: tuple[Any, ...], level: int, keywords: dict[str, Any]) -> None:
    keywords.setdefault("stacklevel", 3)
    _made().log(level, message, *args, **keywords)


def debug(msg: object, *args: Any, **kwargs: Any) -> None:
    """Write a message of level 0; `args` are put in as `msg % args`."""
    _at_user(msg, args, logging.DEBUG, kwargs)


def info(msg: object, *args: Any, **kwargs: Any) -> None:
    """Write a message of level 1."""
    _at_user(msg, args, logging.INFO, kwargs)


def warning(msg: object, *args: Any, **kwargs: Any) -> None:
    """Write a message of level 2."""
    _at_user(msg, args, logging.WARNING, kwargs)


def error(msg: object, *args: Any, **kwargs: Any) -> None:
    """Write a message of level 3."""
    _at_user(msg, args, logging.ERROR, kwargs)


def critical(msg: object, *args: Any, **kwargs: Any) -> None:
    """Write a message of level 4."""
    _at_user(msg, args, logging.CRITICAL, kwargs)
