'use client';

import { useSyncExternalStore } from 'react';

/** What was written and is not sent, by conversation (`null`: one that is to begin): it outlives the field, which goes with its view. */
const drafts = new Map<string | null, string>();
const listeners = new Set<() => void>();

const draftOf = (conversation: string | null): string => drafts.get(conversation) ?? '';

export function keepDraft(conversation: string | null, text: string): void {
  drafts.set(conversation, text);
  for (const listener of listeners) listener();
}

/** What was not taken stands in the field again, before what was written meanwhile. */
export function giveBack(conversation: string | null, text: string): void {
  keepDraft(conversation, [text, draftOf(conversation)].filter(Boolean).join('\n\n'));
}

/** A conversation began: what was written for it is its own now. */
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
