'use client';

import { useEffect, useRef, useState } from 'react';
import { listUiMessages } from '@/api/resources';
import type { Message } from '@/api/types';
import { type Besides, besidesOf } from '@/chat/besides';
import { type Chunk, EMPTY, grown } from '@/chat/parts';

/** What stands beside the stored replies of a stretch, by their ids; read once for each. */
export function useBesides(id: string, messages: Message[]): ReadonlyMap<string, Besides> {
  const [found, setFound] = useState<ReadonlyMap<string, Besides>>(new Map());
  const known = useRef(new Set<string>());
  useEffect(() => {
    const unknown = messages.filter((one) => one.role === 'assistant' && !known.current.has(one.id));
    const [first, last] = [unknown[0], unknown.at(-1)];
    if (!first || !last) return;
    for (const one of unknown) known.current.add(one.id);
    const control = new AbortController();
    listUiMessages(id, first.seq, last.seq, control.signal).then(
      (entries) =>
        setFound((before) => {
          const next = new Map(before);
          for (const entry of entries) {
            const { parts } = entry.parts.reduce((reply, part) => grown(reply, part as Chunk), EMPTY);
            const besides = besidesOf(parts);
            const says = besides.recalled.length > 0 || besides.notices.length > 0;
            if (says && entry.metadata?.message_id) next.set(entry.metadata.message_id, besides);
          }
          return next;
        }),
      () => {
        for (const one of unknown) known.current.delete(one.id);
      },
    );
    return () => control.abort();
  }, [id, messages]);
  return found;
}
