"""A context in the request shape of a provider.

``plain`` keeps one entry per message. The others follow what the providers refuse: roles alternate where they must,
nothing is empty, and a result stands directly after its call (``thread.py`` has these laws, one for all).
"""

from __future__ import annotations

from app.core.context.formats.rendering import Format, Formatted, in_format

__all__ = ["Format", "Formatted", "in_format"]
