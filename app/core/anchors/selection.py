"""Chooses the anchors that the state block shows: active anchors whose message is not served, as many as have room."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from typing import Final

from app.core.anchors.rendering import FRAME_TOKENS, line_of, line_tokens
from app.core.anchors.topics import stems_of
from app.core.model.anchors import Anchor, FoundAnchor
from app.core.model.state import StateEntry
from app.core.text.repeating import is_little_more_than
from app.core.text.token_counts import Estimator
from app.core.text.words import GENERIC_STEMS


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAnchors:
    """The anchors of a conversation that the state block shows."""

    shown: tuple[FoundAnchor, ...] = ()
    """The anchors that are shown, in the order of their positions."""
    behind_marker: int = 0
    """How many further anchors with different words had no room: the marker says their number."""


NO_SERVED_ANCHORS: Final = ServedAnchors()

MIN_TOKEN_LIMIT: Final = 1
"""The room in tokens if nothing is left of an allotment. Anchors that a user set and the marker are served even then; a
room of 0 would mean that no anchors are served at all."""

_MAX_COMPARED_ANCHORS: Final = 50
"""The most earlier anchors with a word that are compared, the newest first: a common word says little."""
_MIN_SHARED_WORDS: Final = 2  # the fewest words that two anchors on the same thing share
_MIN_SHARED_WEIGHT: Final = 0.2
"""The least share of the smaller anchor's words that two anchors have in common, weighted by their rarity."""

_BY_POSITION: Final = attrgetter("seq", "offset", "type", "content", "proposed_by", "importance")
"""The order of positions; the attributes after ``offset`` decide between doubles."""


def serve(
    active: Sequence[FoundAnchor],
    *,
    through_seq: int,
    held_seqs: Collection[int],
    token_limit: int | None,
    estimator: Estimator = "script",
) -> ServedAnchors:
    """Choose among the active anchors.

    Args:
        active: The active anchors of the conversation.
        through_seq: The last message before the served tail.
        held_seqs: Earlier messages that are still served verbatim.
        token_limit: See ``Servable.within``.
        estimator: How tokens are counted.
    """
    if token_limit == 0:
        return NO_SERVED_ANCHORS
    return ServableAnchors(active, through_seq=through_seq, held_seqs=held_seqs, estimator=estimator).within(
        token_limit
    )


class ServableAnchors:
    """The active anchors whose messages are not served, ranked once, so that many rooms can be tried."""

    def __init__(
        self,
        active: Sequence[FoundAnchor],
        *,
        through_seq: int,
        held_seqs: Collection[int],
        estimator: Estimator,
        unread_count: int = 0,
    ) -> None:
        """Rank the anchors.

        Args:
            active: The active anchors of the conversation.
            through_seq: The last message before the served tail.
            held_seqs: Earlier messages that are still served verbatim.
            estimator: How tokens are counted.
            unread_count: The number of further anchors with different words, which were not read as no room is enough.
        """
        self._unread_count = unread_count
        eligible = [anchor for anchor in active if anchor.seq <= through_seq and _is_active(anchor)]
        self._anchors = _without_repeats(
            sorted((one for one in eligible if one.seq not in held_seqs), key=_BY_POSITION)
        )
        sizes = [_line_size(anchor, estimator) for anchor in self._anchors]
        newest_first = reversed(range(len(self._anchors)))
        movable = [index for index in newest_first if self._anchors[index].proposed_by != "user"]
        # Among equals the newest are left out first: the state has what found no room, but not what was shown before.
        self._leaving_order = sorted(movable, key=lambda index: _order_of_leaving(self._anchors[index]))
        self.movable: Mapping[int, tuple[FoundAnchor, int]] = {
            index: (self._anchors[index], sizes[index]) for index in self._leaving_order
        }
        """The anchors that may be left to the marker, with their tokens, by place, in the order of leaving."""
        self._total_tokens = sum(sizes) + (FRAME_TOKENS if self._anchors else 0)
        self._freed_tokens = list(accumulate((sizes[index] for index in self._leaving_order), initial=0))

    def within(self, token_limit: int | None) -> ServedAnchors:
        """The anchors that are shown if the whole element may take ``token_limit`` tokens.

        ``None``: all are shown. ``0``: the policy serves none, and no marker either. Otherwise anchors without room are
        left to a marker. They are left out in this order: first those that a model called settled, then those that it
        passed over, then those that no model proposed. Among equals the least important is left out first, then the
        newest. Anchors that a user set always stay.
        """
        if token_limit == 0:
            return NO_SERVED_ANCHORS
        if token_limit is None:
            return ServedAnchors(shown=tuple(self._anchors))
        return self.without(
            frozenset(self._leaving_order[: bisect_left(self._freed_tokens, self._total_tokens - token_limit)])
        )

    def with_newest_shown(self, hidden: Collection[int]) -> frozenset[int]:
        """The anchors to leave to the marker instead of ``hidden``, as many: the newest on the same thing stays.

        If only an old one stayed, it would seem to hold still.
        """
        hidden_places = set(hidden)
        for old, newer in self._newer_on_same_subject.items():
            hidden_newer = [] if old in hidden_places else [place for place in newer if place in hidden_places]
            if hidden_newer:
                hidden_places ^= {old, hidden_newer[-1]}
        return frozenset(hidden_places)

    @cached_property
    def _newer_on_same_subject(self) -> dict[int, list[int]]:
        """For each anchor's place, the places of later anchors on the same thing, if both may be left out."""
        stems_by_place = {
            place: stems_of(self._anchors[place].content) - GENERIC_STEMS for place in sorted(self.movable)
        }
        stem_counts = Counter(stem for stems in stems_by_place.values() for stem in stems)
        rarity = {stem: math.log((len(stems_by_place) + 1) / (count + 0.5)) for stem, count in stem_counts.items()}
        total_rarity = {place: sum(map(rarity.__getitem__, stems)) for place, stems in stems_by_place.items()}
        newer_places: defaultdict[int, list[int]] = defaultdict(list)
        earlier_places: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_MAX_COMPARED_ANCHORS))
        for place, stems in stems_by_place.items():
            shared: defaultdict[int, list[float]] = defaultdict(list)
            for stem in stems:
                for old in earlier_places[stem]:
                    shared[old].append(rarity[stem])
                earlier_places[stem].append(place)
            for old, shared_rarities in shared.items():
                if len(shared_rarities) >= _MIN_SHARED_WORDS and sum(shared_rarities) >= _MIN_SHARED_WEIGHT * min(
                    total_rarity[old], total_rarity[place]
                ):
                    newer_places[old].append(place)
        return dict(sorted(newer_places.items()))

    def without(self, hidden: Collection[int]) -> ServedAnchors:
        """The anchors that are shown if those at these places are left to the marker."""
        shown = tuple(anchor for index, anchor in enumerate(self._anchors) if index not in hidden)
        return ServedAnchors(shown=shown, behind_marker=len(hidden) + self._unread_count)


def _without_repeats(anchors: Sequence[FoundAnchor]) -> list[FoundAnchor]:
    last: dict[tuple[str, str], int] = {}
    for index, anchor in enumerate(anchors):
        type_and_content = (anchor.type, anchor.content)
        if type_and_content not in last or _authority(anchor) >= _authority(anchors[last[type_and_content]]):
            last[type_and_content] = index
    return [anchors[index] for index in sorted(last.values())]


def _authority(anchor: FoundAnchor) -> tuple[bool, bool]:
    return anchor.proposed_by == "user", anchor.speaker == "user" and not anchor.pasted


def _order_of_leaving(anchor: FoundAnchor) -> tuple[bool, bool, bool, float]:
    return anchor.claimed_status is None, not anchor.passed_over, anchor.proposed_by == "model", anchor.importance


def _line_size(anchor: FoundAnchor, estimator: Estimator) -> int:
    # If the line names a speaker, an older anchor may have been counted without that name.
    if estimator == "script" and not anchor.said_by:
        return anchor.token_count
    return line_tokens(line_of(anchor), estimator)


def _is_active(anchor: FoundAnchor) -> bool:
    return not isinstance(anchor, Anchor) or anchor.status == "active"


def is_entry_in_anchors(anchors: Iterable[FoundAnchor], entry: StateEntry) -> bool:
    """Whether an active anchor says the same as an entry, which nothing later has replaced then."""
    return any(anchor.seq in entry.from_seqs and is_little_more_than(entry.text, anchor.content) for anchor in anchors)
