/** Pure: messages and compactions in the order of what happened. */
import type { Compaction, Message } from '@/api/types';

export type Entry = { kind: 'message'; message: Message } | { kind: 'compaction'; compaction: Compaction };

const SHOWN = new Set(['applied', 'failed', 'rejected']);

/**
 * Each compaction stands before the first message that came after its end. Messages may carry times of their own (an
 * import), so times are taken as the latest so far.
 */
export function entriesOf(messages: Message[], compactions: Compaction[], atEnd: boolean): Entry[] {
  const waiting = compactions
    .filter((one) => SHOWN.has(one.status) && one.finished_at)
    .sort((a, b) => a.finished_at!.localeCompare(b.finished_at!));
  const entries: Entry[] = [];
  let next = 0;
  messages.forEach((message, place) => {
    while (next < waiting.length && waiting[next]!.finished_at! < message.created_at) {
      // What happened before the stretch began is not part of it.
      if (place > 0 || message.seq === 1) entries.push({ kind: 'compaction', compaction: waiting[next]! });
      next += 1;
    }
    entries.push({ kind: 'message', message });
  });
  if (atEnd) for (; next < waiting.length; next += 1) entries.push({ kind: 'compaction', compaction: waiting[next]! });
  return entries;
}
