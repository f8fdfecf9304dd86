'use client';

import { SquarePen } from 'lucide-react';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { listConversations } from '@/api/resources';
import type { ConversationSummary } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useNavigation } from '@/state/navigation';
import { Button } from '@/ui/button';
import { classes } from '@/ui/classes';
import { Field } from '@/ui/field';
import { Failure, useRepeated } from '@/ui/loaded';
import { Spinner } from '@/ui/spinner';
import { Mark } from './mark';
import { plain } from './plain';

/** A search looks through so many titles, and through as many more when it is asked to. */
const SEARCHED = 600;

const PAGE = 30;
const LONGEST_PAGE = 100;

interface Page {
  found: ConversationSummary[];
  next: string | null;
}

const NONE: Page = { found: [], next: null };

/** The list with its next page, each conversation once. */
async function further({ found, next }: Page, limit: number, signal: AbortSignal): Promise<Page> {
  const listing = await listConversations(next, limit, signal);
  const known = new Set(found.map((one) => one.id));
  return { found: [...found, ...listing.data.filter((one) => !known.has(one.id))], next: listing.next_cursor ?? null };
}

/** The list from its beginning, as far as it was read before: whoever looks further down stays there. */
async function anew(length: number, signal: AbortSignal): Promise<Page> {
  let page = NONE;
  do page = await further(page, Math.min(Math.max(length - page.found.length, PAGE), LONGEST_PAGE), signal);
  while (page.next && page.found.length < length);
  return page;
}

/** Conversations, the newest first, page by page, and a search through their titles. */
export function ConversationList({ revision, onOpen }: { revision: number; onOpen?: () => void }) {
  const { t } = useWords();
  const { conversation, view, open } = useNavigation();
  const [page, setPage] = useState<Page>(NONE);
  const [search, setSearch] = useState('');
  const [most, setMost] = useState(SEARCHED);
  const [busy, setBusy] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const end = useRef<HTMLDivElement>(null);

  const held = useRef<Page>(NONE);
  /** The one reading that runs: a page that came after the list was read anew would leave a gap. */
  const reading = useRef<AbortController | null>(null);

  const read = useCallback(async (work: (before: Page, signal: AbortSignal) => Promise<Page>) => {
    reading.current?.abort();
    const mine = new AbortController();
    reading.current = mine;
    setBusy(true);
    try {
      const page = await work(held.current, mine.signal);
      if (mine.signal.aborted) return;
      setPage((held.current = page));
      setError(null);
    } catch (failure) {
      if (!mine.signal.aborted) setError(failure);
    } finally {
      if (reading.current === mine) {
        reading.current = null;
        setBusy(false);
      }
    }
  }, []);

  const begin = useCallback(() => void read(({ found }, signal) => anew(found.length, signal)), [read]);
  const more = useCallback(() => {
    if (!reading.current) void read((before, signal) => further(before, PAGE, signal));
  }, [read]);
  useEffect(begin, [begin, revision]);
  useEffect(() => () => reading.current?.abort(), []);
  useRepeated(error, begin);

  // A search also needs the titles that are not loaded yet.
  const isPartly = search !== '' && page.next !== null && !busy && !error;
  const isEnough = page.found.length >= most;
  useEffect(() => {
    if (isPartly && !isEnough) more();
  }, [isPartly, isEnough, page.next, more]);

  useEffect(() => {
    const mark = end.current;
    if (!mark || !page.next || busy || error || search) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && more());
    observer.observe(mark);
    return () => observer.disconnect();
  }, [page.next, busy, error, search, more]);

  const shown = useMemo(() => {
    const words = plain(search.trim());
    return words ? page.found.filter((one) => plain(one.title ?? one.id).includes(words)) : page.found;
  }, [page.found, search]);

  const go = (id: string | null) => {
    open({ conversation: id, view: id ? view : 'chat' });
    onOpen?.();
  };

  return (
    <div className="flex h-full flex-col">
      <div className="space-y-2.5 p-3">
        <div className="flex h-7 items-center gap-2 px-1">
          <Mark className="size-6 text-accent" />
          <span className="flex-1 font-semibold">Throughline</span>
        </div>
        <Button className="w-full justify-start" onClick={() => go(null)} aria-current={conversation ? undefined : 'page'}>
          <SquarePen className="size-4" aria-hidden />
          {t('new_conversation')}
        </Button>
        <Field label={t('search_titles')} hideLabel type="search" placeholder={t('search_titles')} value={search} onChange={setSearch} />
      </div>
      <nav className="min-h-0 flex-1 overflow-y-auto px-2 pb-3" aria-label={t('conversations')}>
        {Boolean(error) && <Failure error={error} onRetry={begin} />}
        {!busy && shown.length === 0 && (
          <p className="px-2 py-3 text-sm text-soft">{search ? t('nothing_found') : t('no_conversations')}</p>
        )}
        <ul className="space-y-0.5">
          {shown.map((one) => (
            <li key={one.id}>
              <Row summary={one} isOpen={one.id === conversation} onOpen={() => go(one.id)} />
            </li>
          ))}
        </ul>
        {isPartly && isEnough && (
          <div className="space-y-2 px-2 py-3 text-sm text-soft">
            <p>{t('titles_searched', { count: page.found.length })}</p>
            <Button onClick={() => setMost(page.found.length + SEARCHED)}>{t('search_older')}</Button>
          </div>
        )}
        <div ref={end} className="flex h-8 items-center justify-center text-soft">
          {busy && <Spinner />}
        </div>
      </nav>
    </div>
  );
}

function Row({ summary, isOpen, onOpen }: { summary: ConversationSummary; isOpen: boolean; onOpen: () => void }) {
  const { t, date, percent } = useWords();
  return (
    <button
      type="button"
      onClick={onOpen}
      title={summary.title ?? undefined}
      aria-current={isOpen ? 'page' : undefined}
      className={classes(
        'block w-full rounded-xl px-2.5 py-2 text-left focus-visible:-outline-offset-2',
        isOpen ? 'bg-accent-wash' : 'hover:bg-raised',
      )}
    >
      <span className="block truncate text-sm font-medium">{summary.title || t('untitled')}</span>
      <span className="flex gap-1.5 text-xs whitespace-nowrap text-soft tabular-nums">
        <span className="min-w-0 truncate">{t('messages', { count: summary.message_count })}</span>
        <span aria-hidden>·</span>
        <span title={t('gauge_title')}>{percent(summary.context.utilization)}</span>
        <span className="flex-1 text-right">{date(summary.last_message_at ?? summary.created_at)}</span>
      </span>
    </button>
  );
}
