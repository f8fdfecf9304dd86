'use client';

import { useEffect, useRef, useState } from 'react';
import { listUiMessages } from '@/api/resources';
import type { Message } from '@/api/types';
import { type Besides, besidesOf } from '@/chat/besides';
import { type Chunk, EMPTY, grown } from '@/chat/parts';

/** What belongs to the stored replies of a stretch besides their texts, by id; read once, and again with each `revision`. */
export function useBesides(id: string, messages: Message[], revision: number): ReadonlyMap<string, Besides> {
  const [found, setFound] = useState<ReadonlyMap<string, Besides>>(new Map());
  const known = useRef({ ids: new Set<string>(), revision });
  useEffect(() => {
    if (known.current.revision !== revision) known.current = { ids: new Set(), revision };
    const { ids } = known.current;
    const unknown = messages.filter((one) => one.role === 'assistant' && !ids.has(one.id));
    const [first, last] = [unknown[0], unknown.at(-1)];
    if (!first || !last) return;
    for (const one of unknown) ids.add(one.id);
    const forget = () => unknown.forEach((one) => ids.delete(one.id));
    let isRead = false;
    const control = new AbortController();
    listUiMessages(id, first.seq, last.seq, control.signal).then(
      (entries) => {
        isRead = true;
        setFound((before) => {
          const next = new Map(before);
          for (const one of unknown) next.delete(one.id);
          for (const entry of entries) {
            const { parts } = entry.parts.reduce((reply, part) => grown(reply, part as Chunk), EMPTY);
            const besides = besidesOf(parts);
            const says = besides.recalled.length > 0 || besides.notices.length > 0;
            if (says && entry.metadata?.message_id) next.set(entry.metadata.message_id, besides);
          }
          return next;
        });
      },
      () => control.signal.aborted || forget(),
    );
    return () => {
      control.abort();
      if (!isRead) forget();
    };
  }, [id, messages, revision]);
  return found;
}
