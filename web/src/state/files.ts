'use client';

import { useCallback, useEffect, useRef, useSyncExternalStore } from 'react';
import { randomKey } from '@/api/random-key';
import { attachFile, listFiles, removeFile } from '@/api/resources';
import type { AttachedFile } from '@/api/types';
import { nameOf, needsTokens, typeOf } from '@/chat/file-types';
import { type Loaded, useLoaded } from '@/ui/loaded';
import { useConversation } from './conversation';

/** A file that was chosen and is not attached yet. */
export interface Chosen {
  key: number;
  file: File;
  name: string;
  type: string;
  /** `asks` means that somebody has to state the file's weight. */
  step: 'asks' | 'waits' | 'sent' | 'refused';
  error?: unknown;
  /** Its user has closed the dialog in which the refusal is told. */
  isTold?: boolean;
  /** The key with which it is sent, also when it is sent again. */
  idempotency: string;
}

export interface Files {
  attached: AttachedFile[];
  loaded: Loaded<unknown>;
  chosen: Chosen[];
  choose: (files: Iterable<File>) => void;
  /** Attach the file that waited for its weight, in tokens. */
  weigh: (one: Chosen, tokens: number) => void;
  /** Attach a refused file once more. */
  again: (one: Chosen) => void;
  dismiss: (one: Chosen) => void;
  /** What was refused so far was told. */
  told: () => void;
  remove: (id: string) => Promise<void>;
}

type Action = { add: Chosen[] } | { key: number; change: Partial<Chosen> | null };

function reduce(chosen: Chosen[], action: Action): Chosen[] {
  if ('add' in action) return [...chosen, ...action.add];
  const { key, change } = action;
  if (!change) return chosen.filter((one) => one.key !== key);
  return chosen.map((one) => (one.key === key ? { ...one, ...change } : one));
}

const NONE: Chosen[] = [];
/** Chosen files by conversation: they outlive the view in which they were chosen, and a login. */
const held = new Map<string, Chosen[]>();
/** What is being attached, by conversation: one file after the other, in the order of choosing. */
const lines = new Map<string, Promise<void>>();
const listeners = new Set<() => void>();
let numbers = 0;

function change(conversation: string, action: Action): void {
  const chosen = reduce(held.get(conversation) ?? NONE, action);
  if (chosen.length) held.set(conversation, chosen);
  else held.delete(conversation);
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** The files of the open conversation: those that are attached, and those that were chosen. */
export function useFiles(): Files {
  const { id, gauge, refresh } = useConversation();
  // There is no event for files; those of another tab are noticed by their weight.
  const loaded = useLoaded((signal) => listFiles(id, signal), [id, gauge?.breakdown.files]);
  const chosen = useSyncExternalStore(subscribe, () => held.get(id) ?? NONE, () => NONE);
  const { reload } = loaded;

  // A file that is no longer among the chosen ones may be attached, also by a view that is gone.
  const isShown = useRef(true);
  const before = useRef(chosen.length);
  useEffect(() => {
    const isLess = chosen.length < before.current;
    before.current = chosen.length;
    if (!isLess) return;
    reload();
    refresh();
  }, [chosen.length, reload, refresh]);
  useEffect(() => {
    isShown.current = true;
    return () => void (isShown.current = false);
  }, []);

  const attach = useCallback(
    (one: Chosen, tokens: number | null) => {
      change(id, { key: one.key, change: { step: 'waits', error: undefined } });
      const send = async () => {
        change(id, { key: one.key, change: { step: 'sent' } });
        try {
          await attachFile(id, { ...one, tokens }, one.idempotency);
          change(id, { key: one.key, change: null });
          // Another view of the conversation may be open.
          if (!isShown.current) refresh();
        } catch (error) {
          change(id, { key: one.key, change: { step: 'refused', error, isTold: false } });
        }
      };
      lines.set(id, (lines.get(id) ?? Promise.resolve()).then(send));
    },
    [id, refresh],
  );
  const choose = useCallback(
    (files: Iterable<File>) => {
      const added = [...files].map((file): Chosen => {
        const type = typeOf(file.name, file.type);
        numbers += 1;
        const step = needsTokens(type) ? 'asks' : 'waits';
        return { key: numbers, file, name: nameOf(file.name), type, step, idempotency: randomKey() };
      });
      change(id, { add: added });
      for (const one of added) if (one.step === 'waits') attach(one, null);
    },
    [id, attach],
  );
  const again = useCallback(
    (one: Chosen) => {
      if (!needsTokens(one.type)) return attach(one, null);
      // Another weight makes another request.
      change(id, { key: one.key, change: { step: 'asks', error: undefined, idempotency: randomKey() } });
    },
    [id, attach],
  );
  const told = useCallback(() => {
    for (const one of held.get(id) ?? NONE) if (one.step === 'refused') change(id, { key: one.key, change: { isTold: true } });
  }, [id]);
  const dismiss = useCallback((one: Chosen) => change(id, { key: one.key, change: null }), [id]);
  const remove = useCallback(
    async (file: string) => {
      await removeFile(id, file);
      reload();
      refresh();
    },
    [id, reload, refresh],
  );
  return { attached: loaded.value?.data ?? [], loaded, chosen, choose, weigh: attach, again, dismiss, told, remove };
}
