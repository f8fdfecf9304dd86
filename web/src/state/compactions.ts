'use client';

import { useEffect, useState } from 'react';
import { listCompactions } from '@/api/resources';
import type { Compaction } from '@/api/types';

const MOST_PAGES = 20;

/** The compactions since a time, newest first, read again when `revision` changes. */
export function useCompactions(id: string, since: string | null, revision: number): Compaction[] {
  const [found, setFound] = useState<Compaction[]>([]);
  useEffect(() => {
    const control = new AbortController();
    const read = async () => {
      const all: Compaction[] = [];
      let after: string | null = null;
      for (let page = 0; page < MOST_PAGES; page += 1) {
        const listing = await listCompactions(id, after, control.signal);
        all.push(...listing.data);
        after = listing.next_cursor ?? null;
        const oldest = all.at(-1);
        if (!after || !oldest || (since !== null && oldest.requested_at < since)) break;
      }
      return all;
    };
    read().then(setFound, () => undefined);
    return () => control.abort();
  }, [id, since, revision]);
  return found;
}
