'use client';

import { useSyncExternalStore } from 'react';
import { keep, kept } from './kept';

const STORED = 'throughline-drafts';
/**
 * Unsent text by conversation (`null` for one that has not begun): it outlives its field, which is removed with its view,
 * and a reload of the page, but not its tab.
 */
let drafts: Map<string | null, string> | undefined;
const listeners = new Set<() => void>();

const all = (): Map<string | null, string> => (drafts ??= new Map(stored()));

function stored(): [string | null, string][] {
  try {
    return JSON.parse(kept(STORED, 'tab') ?? '[]') as [string | null, string][];
  } catch {
    return [];
  }
}

const draftOf = (conversation: string | null): string => all().get(conversation) ?? '';

export function keepDraft(conversation: string | null, text: string): void {
  if (text) all().set(conversation, text);
  else all().delete(conversation);
  keep(STORED, drafts?.size ? JSON.stringify([...all()]) : null, 'tab');
  for (const listener of listeners) listener();
}

/** Somebody logs out: the next user of this tab does not see what they wrote. */
export function forgetDrafts(): void {
  all().clear();
  keep(STORED, null, 'tab');
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
