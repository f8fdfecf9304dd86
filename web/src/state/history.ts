'use client';

import { useCallback, useEffect, useRef, useState } from 'react';
import { listMessages } from '@/api/resources';
import type { Message } from '@/api/types';
import { adjoin, type Stretch } from './stretch';

const PAGE = 40;
/** The most messages that are kept and mounted; a history of any length scrolls through them. */
export const MOST = 160;
const LONGEST_PAGE = 100;

export interface History extends Stretch {
  loading: 'first' | 'older' | 'newer' | null;
  error: unknown;
  older: () => Promise<void>;
  /** Load further messages; returns all that are shown then. */
  newer: () => Promise<Message[]>;
  /** Show the end of the history; returns the `seq` of its last message. */
  latest: () => Promise<number>;
  /** Show the messages around one. */
  around: (seq: number) => Promise<void>;
  /** Read the shown messages again: one may have been erased, pinned or replaced. If none are shown, read the last ones. */
  again: () => Promise<void>;
}

/** The `seq` of the last message that is shown; 0 if there is none. */
export const lastSeq = ({ messages }: Stretch): number => messages.at(-1)?.seq ?? 0;

const NOTHING: Stretch = { messages: [], atStart: false, atEnd: false };

async function lastPage(id: string, signal: AbortSignal): Promise<Stretch> {
  const page = await listMessages(id, 'desc', null, PAGE, signal);
  return { messages: page.data.toReversed(), atStart: !page.has_more, atEnd: true };
}

/** A stretch of the history around what the reader looks at; it moves as they scroll. */
export function useHistory(id: string): History {
  const [stretch, setStretch] = useState<Stretch>(NOTHING);
  const [loading, setLoading] = useState<History['loading']>('first');
  const [error, setError] = useState<unknown>(null);
  const held = useRef<Stretch>(NOTHING);
  /** Requests are sent one after another: two pages at once would leave a gap. */
  const queue = useRef<Promise<void>>(Promise.resolve());
  const control = useRef(new AbortController());

  useEffect(() => {
    control.current = new AbortController();
    const mine = control.current;
    return () => mine.abort();
  }, [id]);

  const run = useCallback((kind: NonNullable<History['loading']>, work: (signal: AbortSignal) => Promise<Stretch>) => {
    const step = async () => {
      const { signal } = control.current;
      if (signal.aborted) return;
      setLoading(kind);
      try {
        held.current = await work(signal);
        if (signal.aborted) return;
        setStretch(held.current);
        setError(null);
      } catch (failure) {
        if (!signal.aborted) setError(failure);
      } finally {
        if (!signal.aborted) setLoading(null);
      }
    };
    queue.current = queue.current.then(step);
    return queue.current;
  }, []);

  const latest = useCallback(async () => {
    await run('first', (signal) => lastPage(id, signal));
    return lastSeq(held.current);
  }, [id, run]);

  const older = useCallback(
    () =>
      run('older', async (signal) => {
        const first = held.current.messages[0];
        if (!first || held.current.atStart) return held.current;
        const page = await listMessages(id, 'desc', first.seq, PAGE, signal);
        return adjoin(held.current, page.data.toReversed(), { side: 'older', more: Boolean(page.has_more), most: MOST });
      }),
    [id, run],
  );

  const newer = useCallback(async () => {
    await run('newer', async (signal) => {
      const last = held.current.messages.at(-1);
      const page = await listMessages(id, 'asc', last?.seq ?? 0, LONGEST_PAGE, signal);
      return adjoin(held.current, page.data, { side: 'newer', more: Boolean(page.has_more), most: MOST });
    });
    return held.current.messages;
  }, [id, run]);

  const around = useCallback(
    (seq: number) =>
      run('first', async (signal) => {
        const before = await listMessages(id, 'desc', seq, PAGE / 2, signal);
        const after = await listMessages(id, 'asc', seq - 1, PAGE, signal);
        return {
          messages: [...before.data.toReversed(), ...after.data],
          atStart: !before.has_more,
          atEnd: !after.has_more,
        };
      }),
    [id, run],
  );

  const again = useCallback(
    () =>
      run('newer', async (signal) => {
        const { messages, atStart, atEnd } = held.current;
        const [first, last] = [messages[0], messages.at(-1)];
        if (!first || !last) return lastPage(id, signal);
        const read: Message[] = [];
        for (let next = first.seq - 1; next < last.seq; ) {
          const page = await listMessages(id, 'asc', next, LONGEST_PAGE, signal);
          read.push(...page.data.filter((message) => message.seq <= last.seq));
          next = page.data.at(-1)?.seq ?? last.seq;
        }
        return { messages: read, atStart, atEnd };
      }),
    [id, run],
  );

  return { ...stretch, loading, error, older, newer, latest, around, again };
}
