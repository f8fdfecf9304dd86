'use client';

import { useEffect, useState } from 'react';
import { followEvents } from '@/api/events';
import type { Event } from '@/api/types';
import { useWords } from '@/i18n/provider';
import type { Key } from '@/i18n/translator';
import { Originals } from '@/state-view/originals';
import { useConversation } from '@/state/conversation';
import { Chip } from '@/ui/chip';
import { Failure } from '@/ui/loaded';

const NEWEST = 300;

/** The events so far, the newest first, and what is happening now. */
export default function TimelineView() {
  const { t, date } = useWords();
  const { id } = useConversation();
  const [events, setEvents] = useState<Event[]>([]);
  const [live, setLive] = useState(false);
  const [error, setError] = useState<unknown>(null);

  useEffect(() => {
    const control = new AbortController();
    setEvents([]);
    setError(null);
    // Hundreds of events may come at once; they are shown together.
    let waiting: Event[] = [];
    let timer: ReturnType<typeof setTimeout> | null = null;
    const flush = () => {
      timer = null;
      const came = waiting.toReversed();
      waiting = [];
      setEvents((before) => [...came, ...before].slice(0, NEWEST));
    };
    const onEvent = (event: Event) => {
      waiting.push(event);
      timer ??= setTimeout(flush, 60);
    };
    const onMissed = () => {
      waiting = [];
      setEvents([]);
    };
    void followEvents(id, { newest: NEWEST, onEvent, onLive: setLive, onMissed, onGone: setError }, control.signal);
    return () => {
      control.abort();
      if (timer) clearTimeout(timer);
    };
  }, [id]);

  if (error) return <Failure error={error} />;
  const days = new Map<string, Event[]>();
  for (const event of events) {
    const day = date(event.occurred_at);
    days.set(day, [...(days.get(day) ?? []), event]);
  }
  return (
    <div className="space-y-6">
      <p className="flex items-center gap-2 text-sm text-soft" role="status">
        <span className={`size-2 rounded-full ${live ? 'bg-good' : 'bg-warn'}`} aria-hidden />
        {live ? t('live') : t('not_live')} · {t('newest_events', { count: NEWEST })}
      </p>
      {[...days].map(([day, found]) => (
        <section key={day}>
          <h2 className="mb-2 text-sm font-semibold">{day}</h2>
          <ol className="border-l-2 border-line">
            {found.map((event) => (
              <Row key={event.id} event={event} />
            ))}
          </ol>
        </section>
      ))}
    </div>
  );
}

function Row({ event }: { event: Event }) {
  const { t, time, word, number } = useWords();
  const { data } = event;
  const isFold = event.type.startsWith('compaction.');
  const failed = event.type.endsWith('failed');
  const key = `event_${event.type.replace('.', '_')}` as Key;
  const told = t(key);
  // The same event also tells of a message that the policy would protect, but has no room for: no threshold is crossed then.
  const isLeftOut = data.reason === 'over_allotment';
  // A later service may have events that this page has no words for.
  const name = isLeftOut ? t('left_out') : told === key ? event.type : told;
  return (
    <li className="relative flex flex-wrap items-baseline gap-x-2 py-1.5 pl-4 text-sm">
      <span
        className={`absolute top-3.5 -left-[5px] size-2 rounded-full ${failed ? 'bg-bad' : isFold ? 'bg-accent' : 'bg-line'}`}
        aria-hidden
      />
      <time dateTime={event.occurred_at} className="w-12 shrink-0 text-xs text-soft tabular-nums">
        {time(event.occurred_at)}
      </time>
      <span className={failed ? 'text-bad' : undefined}>{name}</span>
      {typeof data.role === 'string' && <Chip>{word('role', data.role)}</Chip>}
      {typeof data.seq === 'number' && <Originals seqs={[data.seq]} />}
      {isFold && typeof data.trigger === 'string' && <Chip>{word('trigger', data.trigger)}</Chip>}
      {isFold && typeof data.reason === 'string' && <Chip>{word('reason', data.reason)}</Chip>}
      {typeof data.tokens_before === 'number' && typeof data.tokens_after === 'number' && (
        <span className="text-xs text-soft tabular-nums">
          {t('tokens_change', { before: number(data.tokens_before), after: number(data.tokens_after) })}
        </span>
      )}
      {event.type === 'context.threshold' && !isLeftOut && typeof data.status === 'string' && <Chip tone="warn">{word('gauge', data.status)}</Chip>}
      {event.notification && <span className="basis-full text-xs text-soft">{event.notification.message}</span>}
    </li>
  );
}
