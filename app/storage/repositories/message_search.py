"""Finds, by the inverted index of stems, the few hundred messages worth reading in a conversation of any length."""

from __future__ import annotations

import json
import math
import unicodedata
from array import array as numbers
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from operator import itemgetter
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Text,
    and_,
    any_,
    bindparam,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH, array
from sqlmodel import col

from app.core.context.tools import OWN_TOOL_NAMES
from app.core.model.word_overlap import text_with_parts
from app.core.retrieval.corpus import Source
from app.core.text.memo import Latest
from app.core.text.stemming import guessed_language, language_of, stemming_language, stems_in
from app.core.text.token_counts import weigh
from app.off_loop import in_slices
from app.storage.repositories.message_keys import KEY_HOLDER, holder_of
from app.storage.repositories.sizes import READ_BYTES, fitting_seqs, text_bytes
from app.storage.repositories.speaker_names import SPEAKER_NAME
from app.storage.repositories.term_keys import TermKeys
from app.storage.repositories.utc_offsets import with_offset
from app.storage.scoped_session import TenantSession
from app.storage.tables import ConversationRow, MessageRow
from app.storage.tenancy import keep_compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessages:
    """The messages that recall and search choose from: a whole small conversation, or a part of a large one."""

    sources: list[Source]
    """The messages in order of ``seq``, without commands, superseded replies and erased messages."""
    documents: Mapping[str, int]
    """How many messages of the conversation hold each stem; for common stems an estimate.

    It is empty if ``sources`` are the whole conversation: the stems can be counted there.
    """
    total: int
    """How many messages the whole conversation has."""
    language: str | None = None
    """The language of the newest messages, if a text was searched for; ``None`` if it is unclear."""
    content_epoch: int = 0
    """The conversation's content epoch at the time of reading: within one epoch, messages are only added."""


WHOLE_UP_TO: Final = 1_500
"""A conversation of at most this many messages is read whole, since all of them can be looked at quickly."""
COMMON_FROM: Final = 400
"""A stem in this many messages or more is common: it is never looked up alone, and its count is an estimate."""
ABUNDANT_FROM: Final = 3_000
"""A stem in about this many messages or more is abundant: it is looked up alone only if all else finds too few.

The index lists all messages that hold a stem, however few of the list are read: two milliseconds for 10 000 messages.
"""
SAMPLED_FROM: Final = 20_000
"""From this many messages on, the abundant stems of a conversation are estimated from a sample of its messages."""
SAMPLED_MESSAGES: Final = 250
"""How many messages that sample has, spread evenly over the conversation."""
ONE_CENTRE_IN: Final = 4
"""The centres, which are read with their neighbours, are the best ``limit // ONE_CENTRE_IN`` messages with stems."""
MIN_CENTRES: Final = 150
"""At least this many of the best messages are centres."""
NEIGHBOURS: Final = 2  # places; recall spreads a fifth of a score to the third place, but finds nothing more by it
MAX_STEMS: Final = 48  # stems of a question; a longer one is a text, and its first words say what it is about
LANGUAGE_MESSAGES: Final = 12  # newest messages from which the language of a conversation is determined
LANGUAGE_CHARACTERS: Final = 160  # characters of each of them
_PAIR_BYTES: Final = 600  # bytes that a kept pair takes besides its numbers
_GOLDEN: Final = 0.618_033_988_75  # its multiples are spread evenly, at distances that fit no pattern of the talk
_SHARE_BYTES: Final = 120  # bytes that the share of an abundant stem takes with its key
_LENGTH_BITS: Final = 3  # highest bits of a conversation's length, which decide which messages are sampled
_MAX_PAIRED_STEMS: Final = 5  # common stems that are looked up two by two: ten pairs
_PAIRS_AT_ONCE: Final = 2  # pairs; two mostly lead to enough messages, and each takes milliseconds in a long history
MAX_SEARCHED_CHARACTERS: Final = 200
"""Characters of a text that are searched for; the time of a search in Postgres grows with them and with the message."""
MAX_SCANNED_MESSAGES: Final = 20_000  # messages that are read for a text without a word: a tenth of a second
STEP_MESSAGES: Final = 2_000  # messages that one statement reads, at most
STEP_BYTES: Final = 8_000_000  # bytes of text that one statement reads, at most
MAX_BYTES: Final = 64_000_000  # bytes of text that one query reads, at most

_PARTS: Final = func.nullif(cast(col(MessageRow.parts), Text), "[]", type_=Text).label("parts")
"""The parts as text, NULL for the many messages without any, so that only existing parts are read as JSON."""
_STRINGS_PATH: Final = '$.** ? (@.type() == "string")'
_FORMS: Final[tuple[Literal["NFC", "NFD"], ...]] = ("NFC", "NFD")
"""How the letters of a text may be written: "é" as one character, or as two."""
_OTHER_SPACES: Final = r"\t-\r\u001c-\u001f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What ``str.split`` takes for space besides the blank; what ``\\s`` means depends on the database."""
_NO_END: Final = 2**63 - 1
_BIGINTS: Final = ARRAY(BigInteger)
_seq = col(MessageRow.seq)
_SHOWN = (
    ~col(MessageRow.is_command),
    col(MessageRow.status) != "erased",
    col(MessageRow.status) != "superseded",
)
_COLUMNS = (
    _seq,
    col(MessageRow.role),
    col(MessageRow.content),
    col(MessageRow.created_at),
    col(MessageRow.token_count),
    SPEAKER_NAME,
    col(MessageRow.utc_offset),
    _PARTS,
)
"""The fields of ``Source`` in order, then the UTC offset of its time, and the parts."""
_ALL = select(*_COLUMNS).where(col(MessageRow.conversation_id) == bindparam("of"), *_SHOWN).order_by(_seq)
_IN_CONVERSATION = col(MessageRow.conversation_id) == bindparam("of")
_AT_SEQS = _seq == any_(bindparam("seqs", type_=_BIGINTS))
_ALL_SINCE = _ALL.where(_seq >= bindparam("first"))
_SIZES_AT_SEQS = select(_seq, text_bytes()).where(_IN_CONVERSATION, _AT_SEQS)
_KEYS_AT_SEQS = select(col(MessageRow.term_keys)).where(_IN_CONVERSATION, _AT_SEQS)
_SUM_OF_BYTES = (
    select(cast(func.sum(text_bytes()), BigInteger)).where(_IN_CONVERSATION, _AT_SEQS).correlate(None).scalar_subquery()
)
_ALL_AT_SEQS = _ALL.where(_AT_SEQS)
_ALL_AT_SEQS_IF_SMALL = _ALL_AT_SEQS.where(bindparam("most", type_=BigInteger) >= _SUM_OF_BYTES)
_EPOCH = select(col(ConversationRow.content_epoch)).where(col(ConversationRow.id) == bindparam("of")).scalar_subquery()
_SIZE = (
    select(
        col(MessageRow.message_sum),
        col(MessageRow.byte_sum),
        _seq,
        _EPOCH.label("epoch"),
        func.left(col(MessageRow.content), LANGUAGE_CHARACTERS),
    )
    .where(_IN_CONVERSATION, bindparam("through", type_=BigInteger) >= _seq)
    .order_by(_seq.desc())
    .limit(bindparam("limit", type_=BigInteger))
)
_KEY_PAIRS = (
    func.unnest(bindparam("firsts", type_=_BIGINTS), bindparam("seconds", type_=_BIGINTS))
    .table_valued("first", "second", name="wanted", with_ordinality="place")
    .render_derived()
)
_PAIR_HOLDER = holder_of(array([_KEY_PAIRS.c.first, _KEY_PAIRS.c.second]), _KEY_PAIRS)
_HOLDERS_OF_PAIR = (
    select(col(_PAIR_HOLDER.seq))
    .where(col(_PAIR_HOLDER.conversation_id) == bindparam("of"))
    .limit(bindparam("limit", type_=BigInteger))
    .correlate(_KEY_PAIRS)
)
_HOLDERS_BY_PAIR = select(_KEY_PAIRS.c.place, func.array(_HOLDERS_OF_PAIR.scalar_subquery(), type_=_BIGINTS))
keep_compiled(
    _ALL, _ALL_AT_SEQS, _ALL_AT_SEQS_IF_SMALL, _ALL_SINCE, _SIZES_AT_SEQS, _KEYS_AT_SEQS, _SIZE, _HOLDERS_BY_PAIR
)


_Pair = tuple[int, int]
"""The keys of two stems, or the key of one stem twice."""
_FIRST_HOLDERS: Final = Latest[tuple[UUID | None, UUID, _Pair], tuple[int, "numbers[int]"]]()
"""The first ``COMMON_FROM`` messages that hold both stems, with the content epoch, by tenant, conversation and pair.

They stay the same until something is erased. A shorter list is not kept, since the next message may add to it.
"""
_ABUNDANT_SHARES: Final = Latest[tuple[UUID | None, UUID], tuple[int, int, Mapping[int, float]]]()
"""The content epoch, the last ``seq`` of the sampled range, and the shares of stems, by tenant and conversation."""


@dataclass(frozen=True, slots=True)
class _Posting:
    """The messages that hold a stem (the first ``COMMON_FROM`` of them at most), and about how many hold it.

    For an abundant stem the messages are not looked up.
    """

    seqs: frozenset[int]
    estimate: int

    @property
    def is_abundant(self) -> bool:
        return self.estimate > 0 and not self.seqs

    @property
    def is_common(self) -> bool:
        return self.is_abundant or len(self.seqs) >= COMMON_FROM


class MessageSearch:
    """Finds, by the inverted index of stems, the messages of one conversation that are worth reading."""

    def __init__(self, session: TenantSession, conversation_id: UUID, *, through_seq: int | None = None) -> None:
        """Prepare the look-up.

        Args:
            session: The session of the unit of work.
            conversation_id: The conversation.
            through_seq: The last message of which anything is known; ``None`` = the newest. Later messages change no
                result.
        """
        self._session = session
        self._through = _NO_END if through_seq is None else through_seq
        self._id = conversation_id
        self._of = col(MessageRow.conversation_id) == conversation_id
        self._keys = TermKeys(conversation_id)
        self._epoch = 0

    async def sources(
        self, stems: Sequence[str], text: str, *, limit: int, neighbours: bool, known: FoundMessages | None
    ) -> FoundMessages:
        """See ``MessageRepository.sources``."""
        total, bytes_, last_seq, epoch, newest = await self._conversation_size(LANGUAGE_MESSAGES if text else 1)
        language = language_of(newest) if text else None
        if neighbours and total <= WHOLE_UP_TO and bytes_ <= READ_BYTES:
            found = await self._read_whole(known.sources if known and known.content_epoch == epoch else ())
            return FoundMessages(sources=found, documents={}, total=total, language=language, content_epoch=epoch)
        wanted = list(
            dict.fromkeys([*islice(dict.fromkeys(stems), MAX_STEMS), *_stems_of_both_languages(text, language)])
        )
        self._epoch = epoch
        postings = await self._postings(wanted, last_seq)
        weights = {stem: math.log1p(total / max(posting.estimate, 1)) for stem, posting in postings.items()}
        scores: defaultdict[int, float] = defaultdict(float)
        for stem, posting in postings.items():
            for seq in posting.seqs:
                scores[seq] += weights[stem]
        await self._add_pairs(scores, postings, weights, limit)
        if len(scores) < limit:
            await self._add_abundant(scores, postings, weights)
        newest_first = sorted(scores, reverse=True)  # and so among equal scores
        best = sorted(newest_first, key=scores.__getitem__, reverse=True)[:limit]
        around = _with_neighbours(best[: max(limit // ONE_CENTRE_IN, MIN_CENTRES)]) if neighbours else set()
        chosen = [*best, *sorted(around.difference(best))]
        return FoundMessages(
            sources=await self._read_fitting(chosen),
            documents={stem: posting.estimate for stem, posting in postings.items()},
            total=total,
            language=language,
        )

    async def containing(self, texts: Sequence[str], *, stems: Sequence[str], limit: int) -> list[Source]:
        """See ``MessageRepository.containing``."""
        keys = [self._keys.of_stem(stem) for stem in stems]
        sought = literal(keys, _BIGINTS)
        if keys:
            held = col(KEY_HOLDER.term_keys).op("@>")(sought)
            listed = (
                select(col(KEY_HOLDER.seq))
                .where(col(KEY_HOLDER.conversation_id) == self._id, held, col(KEY_HOLDER.seq) <= self._through)
                .limit(MAX_SCANNED_MESSAGES)
            )
            seqs = sorted(await self._session.all(listed), reverse=True)
            if len(seqs) < MAX_SCANNED_MESSAGES:
                steps = [seqs[place : place + STEP_MESSAGES] for place in range(0, len(seqs), STEP_MESSAGES)]
                return await self._messages_with_texts(texts, [_has_seq_in(step) for step in steps], limit)
        _, _, last_seq, _, _ = await self._conversation_size()
        firsts = range(last_seq, max(last_seq - MAX_SCANNED_MESSAGES, 0), -STEP_MESSAGES)
        newest = [
            _seq.between(max(first - STEP_MESSAGES, last_seq - MAX_SCANNED_MESSAGES) + 1, first) for first in firsts
        ]
        holders = col(MessageRow.term_keys).op("@>")(sought)
        return await self._messages_with_texts(
            texts, [and_(step, holders) for step in newest] if keys else newest, limit
        )

    async def _messages_with_texts(
        self, texts: Sequence[str], steps: Sequence[ColumnElement[bool]], limit: int
    ) -> list[Source]:
        """The first ``limit`` messages that have all the texts, read step by step, ``MAX_BYTES`` at most."""
        found: list[Source] = []
        left_bytes = MAX_BYTES
        for step in steps:
            sizes = select(_seq, col(MessageRow.byte_length)).where(self._of, step).order_by(_seq.desc())
            for seqs, weight in _batches(await self._session.rows(sizes)):
                matching = (
                    self._select_shown()
                    .where(_has_seq_in(seqs), _has_all_texts(texts))
                    .order_by(_seq.desc())
                    .limit(limit)
                )
                lines = await self._session.rows(matching)
                found += await _sources_of_lines(lines)
                left_bytes -= weight
                if len(found) >= limit or left_bytes <= 0:
                    return found[:limit]
        return found

    async def _read_fitting(self, seqs: Sequence[int]) -> list[Source]:
        """The messages at these positions, the best first; of more than ``READ_BYTES`` only those that fit."""
        if lines := await self._session.records(_ALL_AT_SEQS_IF_SMALL, of=self._id, seqs=sorted(seqs), most=READ_BYTES):
            return await _sources_of_lines(lines)
        sizes = dict(await self._session.rows(_SIZES_AT_SEQS, of=self._id, seqs=list(seqs)))
        return await self._read_sources(fitting_seqs([(seq, sizes[seq]) for seq in seqs if seq in sizes], READ_BYTES))

    async def _conversation_size(self, newest: int = 1) -> tuple[int, int, int, int, list[str]]:
        """The messages, bytes, last ``seq`` and content epoch, and the beginnings of the ``newest`` messages."""
        found = await self._session.rows(_SIZE, of=self._id, limit=newest, through=self._through)
        if not found:
            return 0, 0, 0, 0, []
        messages, bytes_, last_seq, epoch, _ = found[0]
        return messages, bytes_, last_seq, epoch, [row[-1] for row in found]

    async def _postings(self, stems: Sequence[str], last_seq: int) -> dict[str, _Posting]:
        shares = await self._shares_of_abundant(last_seq) if stems else {}
        keys = {stem: self._keys.of_stem(stem) for stem in stems}
        abundant = [stem for stem, key in keys.items() if key in shares]
        others = [stem for stem, key in keys.items() if key not in shares]
        lists = await self._messages_holding(map(keys.__getitem__, others))
        found = {
            stem: _Posting(seqs, _estimated_count(seqs, last_seq)) for stem, seqs in zip(others, lists, strict=True)
        }
        found |= {stem: _Posting(frozenset(), round(shares[keys[stem]] * last_seq)) for stem in abundant}
        return {stem: found[stem] for stem in stems}

    async def _shares_of_abundant(self, last_seq: int) -> Mapping[int, float]:
        """The keys of abundant stems, each with the share of messages that hold it, estimated from a sample.

        Which messages are sampled depends only on the conversation's length, and changes when that has grown by an
        eighth to a quarter. So all processes get the same shares.
        """
        if last_seq < SAMPLED_FROM:
            return {}
        step = 1 << (last_seq.bit_length() - _LENGTH_BITS)
        through = last_seq // step * step
        conversation = self._session.tenant_id, self._id
        known = _ABUNDANT_SHARES.get(conversation)
        if known is not None and known[:2] == (self._epoch, through):
            return known[2]
        seqs = sorted({1 + int(part * _GOLDEN % 1 * through) for part in range(SAMPLED_MESSAGES)})
        holding = Counter(chain.from_iterable(await self._session.all(_KEYS_AT_SEQS, of=self._id, seqs=seqs)))
        fewest = ABUNDANT_FROM * len(seqs) / through
        shares = {key: count / len(seqs) for key, count in holding.items() if count >= fewest}
        _ABUNDANT_SHARES.keep(conversation, (self._epoch, through, shares), _PAIR_BYTES + _SHARE_BYTES * len(shares))
        return shares

    async def _add_abundant(
        self, scores: dict[int, float], postings: Mapping[str, _Posting], weights: Mapping[str, float]
    ) -> None:
        """Add the first messages that hold an abundant stem. Called if all else leads to too few messages."""
        stems = [stem for stem, posting in postings.items() if posting.is_abundant]
        for stem, seqs in zip(stems, await self._messages_holding(map(self._keys.of_stem, stems)), strict=True):
            scores |= {seq: max(scores.get(seq, 0.0), weights[stem]) for seq in seqs}

    async def _add_pairs(
        self, scores: dict[int, float], postings: Mapping[str, _Posting], weights: Mapping[str, float], limit: int
    ) -> None:
        """Add the scores of messages that hold two common stems: one common stem alone leads to too many messages.

        The pairs with the highest scores come first. The others are not looked up once ``limit`` messages score higher.
        """
        common = [stem for stem, posting in postings.items() if posting.is_common]
        rarest = sorted(common, key=lambda stem: -weights[stem])[:_MAX_PAIRED_STEMS]
        pairs = [(weights[one] + weights[other], one, other) for one, other in combinations(rarest, 2)]
        pairs.sort(key=itemgetter(0), reverse=True)
        for place in range(0, len(pairs), _PAIRS_AT_ONCE):
            some = pairs[place : place + _PAIRS_AT_ONCE]
            if len(scores) >= limit and sorted(scores.values(), reverse=True)[limit - 1] >= some[0][0]:
                return
            lists = await self._messages_holding_both(
                [(self._keys.of_stem(one), self._keys.of_stem(other)) for _, one, other in some]
            )
            for (value, _, _), seqs in zip(some, lists, strict=True):
                scores |= {seq: max(scores.get(seq, 0.0), value) for seq in seqs}

    async def _messages_holding(self, keys: Iterable[int]) -> list[frozenset[int]]:
        return await self._messages_holding_both([(key, key) for key in keys])

    async def _messages_holding_both(self, pairs: Sequence[_Pair]) -> list[frozenset[int]]:
        holding = {pair: frozenset(seqs) for pair in pairs if (seqs := self._known_holders(pair))}
        sought = [pair for pair in pairs if pair not in holding]
        if sought:
            firsts, seconds = map(list, zip(*sought, strict=True))
            found = await self._session.rows(
                _HOLDERS_BY_PAIR, of=self._id, firsts=firsts, seconds=seconds, limit=COMMON_FROM
            )
            for place, seqs in found:
                self._keep_if_common(sought[place - 1], seqs)
                holding[sought[place - 1]] = frozenset(seqs)
        if self._through == _NO_END:
            return [holding[pair] for pair in pairs]
        return [frozenset(seq for seq in holding[pair] if seq <= self._through) for pair in pairs]

    def _known_holders(self, pair: _Pair) -> Sequence[int]:
        epoch, seqs = _FIRST_HOLDERS.get((self._session.tenant_id, self._id, pair)) or (None, ())
        return seqs if epoch == self._epoch else ()

    def _keep_if_common(self, pair: _Pair, seqs: Sequence[int]) -> None:
        if len(seqs) >= COMMON_FROM:
            kept = numbers("q", seqs)
            key = self._session.tenant_id, self._id, pair
            _FIRST_HOLDERS.keep(key, (self._epoch, kept), _PAIR_BYTES + kept.itemsize * len(kept))

    async def _read_whole(self, known: Sequence[Source]) -> list[Source]:
        if not known:
            return await self._read_sources()
        # The last known message is read again, to see that it is the same conversation.
        newer = await _sources_of_lines(await self._session.records(_ALL_SINCE, of=self._id, first=known[-1].seq))
        return [*known[:-1], *newer] if newer[:1] == [known[-1]] else await self._read_sources()

    async def _read_sources(self, seqs: Iterable[int] | None = None) -> list[Source]:
        if seqs is None:
            lines = await self._session.records(_ALL, of=self._id)
        else:
            lines = await self._session.records(_ALL_AT_SEQS, of=self._id, seqs=sorted(seqs))
        return await _sources_of_lines(lines)

    def _select_shown(self) -> Any:
        return select(*_COLUMNS).where(self._of, *_SHOWN)


def _stems_of_both_languages(text: str, language: str | None) -> Iterator[str]:
    languages = dict.fromkeys((guessed_language(text), stemming_language(language)))
    found = (stem for language in languages if language for stem in stems_in(text, language))
    return islice(dict.fromkeys(found), MAX_STEMS)


def _estimated_count(seqs: frozenset[int], last_seq: int) -> int:
    # The list is in order of writing, and is cut off: from its density follows how many there are in all. A row may be
    # written where an earlier one left room, far from its neighbours, so the last entry alone must not decide.
    if len(seqs) < COMMON_FROM:
        return len(seqs)
    middle = sorted(seqs)[len(seqs) // 2]
    return max(len(seqs), round(len(seqs) / 2 * last_seq / middle))


def _with_neighbours(seqs: Iterable[int]) -> set[int]:
    return {seq + distance for seq in seqs for distance in range(-NEIGHBOURS, NEIGHBOURS + 1)}


def _has_seq_in(seqs: Sequence[int]) -> ColumnElement[bool]:
    return _seq == any_(literal(list(seqs), _BIGINTS))


def _batches(sizes: Sequence[Any]) -> Iterator[tuple[list[int], int]]:
    """Groups of positions with their sizes. A group has at most ``STEP_BYTES``, or is a single message."""
    seqs: list[int] = []
    weight = 0
    for seq, size in sizes:
        if seqs and weight + size > STEP_BYTES:
            yield seqs, weight
            seqs, weight = [], 0
        seqs.append(seq)
        weight += size
    if seqs:
        yield seqs, weight


def _has_all_texts(texts: Sequence[str]) -> ColumnElement[bool]:
    """Whether a message has each of these texts literally, in its content or in a text of its parts.

    The message's text is computed once for all of them. Its letters may be written as one character, as several, or as
    they are given, which may be neither: keyboards for Bengali, Hindi and Vietnamese write so.
    """
    wanted = dict.fromkeys(
        tuple(text[:MAX_SEARCHED_CHARACTERS] for text in form)
        for form in (texts, *([unicodedata.normalize(name, text) for text in texts] for name in _FORMS))
    )
    parts = cast(col(MessageRow.parts), JSONB)
    strings = func.jsonb_path_query(parts, cast(_STRINGS_PATH, JSONPATH)).column_valued("told")
    in_parts = select(func.string_agg(strings.op("#>>")(cast([], ARRAY(Text))), " ")).correlate(MessageRow)
    full_text: ColumnElement[Any] = case(
        (cast(col(MessageRow.parts), Text) == "[]", col(MessageRow.content)),
        else_=col(MessageRow.content) + " " + func.coalesce(in_parts.scalar_subquery(), ""),
    )
    if any(" " in text for text in texts):
        # Most texts have only single blanks, and seeing that takes a tenth of the time of replacing them.
        plain = func.regexp_replace(full_text, f"[ {_OTHER_SPACES}]+", " ", "g")
        full_text = case((full_text.op("~")(f"  |[{_OTHER_SPACES}]"), plain), else_=full_text)
    has_sigma = any("σ" in text or "ς" in text for text in map(str.lower, texts))
    # OFFSET 0 keeps the planner from repeating the expression at each use.
    line = select(_lowered(full_text, has_sigma=has_sigma).label("said")).correlate(MessageRow).offset(0)
    said = line.lateral("line")
    lowered = [_all_lowered(form, has_sigma=has_sigma) for form in wanted]
    names = [f"form_{number}" for number in range(len(lowered))]
    each = func.unnest(*lowered).table_valued(*names, name="each").render_derived()
    has_all = func.bool_and(or_(*(func.strpos(said.c.said, each.c[name]) > 0 for name in names)))
    return select(has_all).select_from(said.join(each, true())).correlate(MessageRow).scalar_subquery()


def _all_lowered(texts: Sequence[str], *, has_sigma: bool) -> ColumnElement[Any]:
    """The texts in small letters, as an array that is computed once for all messages."""
    given = func.unnest(literal(list(texts), ARRAY(Text))).column_valued("given")
    return func.array(select(_lowered(given, has_sigma=has_sigma)).scalar_subquery(), type_=ARRAY(Text))


def _lowered(text: Any, *, has_sigma: bool) -> ColumnElement[Any]:
    """A text in small letters, for both sides of a comparison: which letters have small ones depends on the database.

    With ``has_sigma`` the two small sigmas are alike, as in ``has_phrases``.
    """
    lowered: ColumnElement[Any] = func.lower(text)
    return func.translate(lowered, "ς", "σ") if has_sigma else lowered


async def _sources_of_lines(lines: Sequence[Sequence[Any]]) -> list[Source]:
    with_parts = iter(await in_slices(_source_with_parts, [line for line in lines if line[-1] is not None]))
    found = (_source(line) if line[-1] is None else next(with_parts) for line in lines)
    return [source for source in found if source is not None]


def _source(line: Sequence[Any]) -> Source:
    source, offset = Source(*line[:-2]), line[-2]
    return source if offset is None else source._replace(at=with_offset(source.at, offset))


def _source_with_parts(line: Sequence[Any]) -> Source | None:
    source, parts = _source(line), json.loads(line[-1])
    if not parts:
        return source
    if not source.text and all(map(_is_look_up, parts)):
        return None
    # The tokens are estimated again, since a text that content and parts repeat is there only once.
    text = text_with_parts(source.text, parts)
    return source._replace(text=text, tokens=weigh(source.role, text).tokens)


def _is_look_up(part: Mapping[str, Any]) -> bool:
    # A call of our own tool, or its result, has no text of its own: the messages that it quotes are found directly.
    return "quotes" in part or (part.get("type") == "tool_call" and part.get("name") in OWN_TOOL_NAMES)
