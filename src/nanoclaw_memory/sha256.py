"""SHA-256 without OpenSSL, which takes a hook four milliseconds to load and these short texts do not need."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        sha256 = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # an interpreter that was built without it
        from hashlib import sha256

__all__ = ["sha256"]
