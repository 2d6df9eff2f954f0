"""Every error a caller may meet; each names what is wrong and, in `hint`, the next step.

NanoClawError                    something failed (exit 1)
├── Refused                      what the caller gave cannot be accepted (exit 2)
│   ├── InvalidValue             a value, date, name or size is wrong
│   ├── PathRefused              a path outside what this scope may touch
│   ├── Conflict                 what the caller read was changed since
│   ├── SettingsError            nanoclaw.json, an environment variable or a flag
│   └── NotFound                 the named thing does not exist
├── NoMemory                     there is no home at that place
├── FileProblem                  a memory file cannot be read or written as text
├── StoreError                   a database cannot serve
│   ├── NewerSchema              written by a newer release; never touched
│   ├── CorruptDatabase          fails its integrity check
│   ├── StoreBusy                another process holds it longer than the limit
│   └── ReadOnlyStore            it may be read, and cannot be written
├── ProviderError                an embedder, reranker or writer failed
└── ServerBusy                   too many requests wait; ask again
"""

from __future__ import annotations


class NanoClawError(Exception):
    """Base of all our errors: a message, and a hint that names the next step."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Refused(NanoClawError):
    """The caller's input is refused; nothing was changed."""

    exit_code = 2


class InvalidValue(Refused):
    """A value, date, name or size is wrong."""


class PathRefused(Refused):
    """A path that this scope may not touch."""


class Conflict(Refused):
    """What the caller read was changed since; nothing was written over it."""


class SettingsError(Refused):
    """A setting is unknown or has the wrong type."""


class NotFound(Refused):
    """The named thing does not exist."""


class NoMemory(NanoClawError):
    """There is no home at that place; nothing was created."""


class FileProblem(NanoClawError):
    """A memory file cannot be read or written as text."""


class StoreError(NanoClawError):
    """A database cannot serve."""


class NewerSchema(StoreError):
    """The database was written by a newer release."""


class CorruptDatabase(StoreError):
    """The database fails its integrity check."""


class StoreBusy(StoreError):
    """Another process held the database longer than the limit."""


class ReadOnlyStore(StoreError):
    """The database, or the folder around it, cannot be written."""


class ProviderError(NanoClawError):
    """An embedder, reranker or writer failed."""


class ServerBusy(NanoClawError):
    """Too many requests of a client wait already; nothing was done."""
