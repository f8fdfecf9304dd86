'use client';

import { useSyncExternalStore } from 'react';

/** Unsent text by conversation (`null` for one that has not begun): it outlives its field, which is removed with its view. */
const drafts = new Map<string | null, string>();
const listeners = new Set<() => void>();

const draftOf = (conversation: string | null): string => drafts.get(conversation) ?? '';

export function keepDraft(conversation: string | null, text: string): void {
  drafts.set(conversation, text);
  for (const listener of listeners) listener();
}

/** Text that was not accepted is put back into the field, before what was written meanwhile. */
export function giveBack(conversation: string | null, text: string): void {
  keepDraft(conversation, [text, draftOf(conversation)].filter(Boolean).join('\n\n'));
}

/** A conversation began: the text written for it now belongs to it. */
export function moveDraft(conversation: string): void {
  keepDraft(conversation, draftOf(null));
  keepDraft(null, '');
}

export function useDraft(conversation: string | null): string {
  return useSyncExternalStore(subscribe, () => draftOf(conversation), () => '');
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
