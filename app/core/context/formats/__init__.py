"""A context in the request shape of a provider.

``plain`` keeps one entry per message. The other formats avoid what providers refuse: roles alternate where they must,
nothing is empty, and a result stands directly after its call (``thread.py`` has these rules for all formats).
"""

from __future__ import annotations

from app.core.context.formats.rendering import Format, Formatted, in_format

__all__ = ["Format", "Formatted", "in_format"]
