/** Pure: messages and compactions in the order of what happened. */
import type { Compaction, Message } from '@/api/types';

export type Entry = { kind: 'message'; message: Message } | { kind: 'compaction'; compaction: Compaction };

const SHOWN = new Set(['applied', 'failed', 'rejected']);

/**
 * Each compaction comes before the first message after its end. Messages may have times of their own (in an
 * import), so each counts with the latest time so far.
 */
export function entriesOf(messages: Message[], compactions: Compaction[], atEnd: boolean): Entry[] {
  const waiting = compactions
    .filter((one) => SHOWN.has(one.status) && one.finished_at)
    .sort((a, b) => a.finished_at!.localeCompare(b.finished_at!));
  const entries: Entry[] = [];
  let next = 0;
  messages.forEach((message, place) => {
    while (next < waiting.length && waiting[next]!.finished_at! < message.created_at) {
      // Compactions from before the stretch do not belong to it.
      if (place > 0 || message.seq === 1) entries.push({ kind: 'compaction', compaction: waiting[next]! });
      next += 1;
    }
    entries.push({ kind: 'message', message });
  });
  if (atEnd) for (; next < waiting.length; next += 1) entries.push({ kind: 'compaction', compaction: waiting[next]! });
  return entries;
}
