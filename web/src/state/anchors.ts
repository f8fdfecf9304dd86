'use client';

import { useEffect, useState } from 'react';
import { anchorsBetween } from '@/api/resources';
import type { Anchor } from '@/api/types';

/** The anchors of a stretch of messages, by the number of their message. */
export function useAnchors(id: string, from: number | null, to: number | null, revision: number) {
  const [found, setFound] = useState<ReadonlyMap<number, Anchor[]>>(new Map());
  useEffect(() => {
    if (from === null || to === null) return;
    const control = new AbortController();
    anchorsBetween(id, from, to, control.signal).then(
      (anchors) => setFound(grouped(anchors)),
      () => undefined,
    );
    return () => control.abort();
  }, [id, from, to, revision]);
  return found;
}

function grouped(anchors: Anchor[]): ReadonlyMap<number, Anchor[]> {
  const groups = new Map<number, Anchor[]>();
  for (const anchor of anchors) {
    groups.set(anchor.original_position, [...(groups.get(anchor.original_position) ?? []), anchor]);
  }
  return groups;
}
