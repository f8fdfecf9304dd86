'use client';

import { useSyncExternalStore } from 'react';
import { keep, kept } from './kept';

const STORED = 'throughline-drafts';
/**
 * Unsent text by conversation (`null` for one that has not begun): it outlives its field, which is removed with its view,
 * and a reload of the page, but not its tab.
 */
let drafts: Map<string | null, string> | undefined;
/** Text that was sent, and the last message before it, until the service has it: a reload meanwhile brings it back. */
interface Sent {
  text: string;
  base: number;
}
const sent = new Map<string | null, Sent>();
/** What a reload brought back, at the beginning of the draft: nobody knew whether it had arrived. */
const returned = new Map<string | null, Sent>();
const listeners = new Set<() => void>();

const all = (): Map<string | null, string> => (drafts ??= new Map(stored()));

function stored(): [string | null, string][] {
  try {
    const found = JSON.parse(kept(STORED, 'tab') ?? '[]') as [string | null, string, Sent?][];
    return found.map(([conversation, draft, before]) => {
      if (before) returned.set(conversation, before);
      return [conversation, joined(before?.text, draft)];
    });
  } catch {
    return [];
  }
}

const joined = (...texts: (string | undefined)[]): string => texts.filter(Boolean).join('\n\n');

function store(): void {
  const names = [...new Set([...all().keys(), ...sent.keys()])];
  const told = names.map((name) => [name, restOf(name), sent.get(name) ?? returned.get(name)]);
  keep(STORED, told.length ? JSON.stringify(told) : null, 'tab');
}

const draftOf = (conversation: string | null): string => all().get(conversation) ?? '';

/** The draft without what a reload brought back. */
function restOf(conversation: string | null): string {
  const [draft, before] = [draftOf(conversation), returned.get(conversation)];
  return before ? draft.slice(before.text.length).trimStart() : draft;
}

export function keepDraft(conversation: string | null, text: string): void {
  if (!text.startsWith(returned.get(conversation)?.text ?? '')) returned.delete(conversation);
  if (text) all().set(conversation, text);
  else all().delete(conversation);
  store();
  for (const listener of listeners) listener();
}

/** Text was sent after a message, and may be lost on its way; without a text, nothing is on its way any more. */
export function keepSent(conversation: string | null, text: string | null, base = 0): void {
  if (text) sent.set(conversation, { text, base });
  else sent.delete(conversation);
  returned.delete(conversation);
  store();
}

/** Take out of the field what a reload brought back, if it had arrived. */
export function takeArrived(conversation: string, isThere: (text: string, base: number) => boolean): void {
  const before = returned.get(conversation);
  if (!before || !isThere(before.text, before.base)) return;
  const rest = restOf(conversation);
  returned.delete(conversation);
  keepDraft(conversation, rest);
}

/** Somebody logs out: the next user of this tab does not see what they wrote. */
export function forgetDrafts(): void {
  all().clear();
  sent.clear();
  keep(STORED, null, 'tab');
}

/** Text that was not accepted is put back into the field, before what was written meanwhile. */
export function giveBack(conversation: string | null, text: string): void {
  sent.delete(conversation);
  keepDraft(conversation, joined(text, draftOf(conversation)));
}

/** A conversation began: the text written for it now belongs to it, and so do its first words. */
export function moveDraft(conversation: string, words: string | null): void {
  keepDraft(conversation, draftOf(null));
  keepDraft(null, '');
  keepSent(conversation, words);
  keepSent(null, null);
}

export function useDraft(conversation: string | null): string {
  return useSyncExternalStore(subscribe, () => draftOf(conversation), () => '');
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
