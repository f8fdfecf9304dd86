"""What a digest tells and something later took back is not served: a correction holds for every part of the block."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from app.domain.segments.values import Segment
from app.domain.words.text import sentences

_SPEAKER: Final = re.compile(r"^[^\W\d_]{1,20}: ")
_LEAST: Final = 12  # characters; less than this says nothing that could be taken back


def without_outdated(segments: Sequence[Segment], quotes: Sequence[str]) -> list[Segment]:
    """The segments without those sentences of their levels that repeat one of these statements.

    Args:
        segments: With levels.
        quotes: The statements, verbatim, that something later supersedes.
    """
    gone = [plain for quote in quotes if len(plain := _plain(quote)) >= _LEAST]
    joined = "\n".join(gone)  # statements and sentences are on one line each
    return [_without(segment, gone, joined) for segment in segments] if gone else list(segments)


def _without(segment: Segment, gone: Sequence[str], joined: str) -> Segment:
    levels = dict(segment.levels)
    for name, level in segment.levels.items():
        told = sentences(level.text)
        kept = [one for one in told if not _repeats(_plain(one), gone, joined)]
        if len(kept) < len(told):
            levels[name] = replace(level, text=" ".join(kept))
    return replace(segment, levels=levels)


def _repeats(sentence: str, gone: Sequence[str], joined: str) -> bool:
    return len(sentence) >= _LEAST and (sentence in joined or any(quote in sentence for quote in gone))


def _plain(text: str) -> str:
    """Without its speaker, its end, its case and its line breaks."""
    return _SPEAKER.sub("", " ".join(text.split())).rstrip(".!?…。！？ ").casefold()
