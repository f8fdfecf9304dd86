"""Errors while the service and its servers start; each is one line for a person."""

from __future__ import annotations


class EmbeddedError(Exception):
    """The servers cannot run; the message is one line and says what to do."""


class AlreadyRunningError(EmbeddedError):
    """Another process runs the servers of this data folder."""


class CannotStartError(Exception):
    """The service cannot start; the message is one line and says what to do."""
