'use client';

import { useCallback, useReducer, useRef } from 'react';
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
  remove: (id: string) => Promise<void>;
}

type Action = { add: Chosen[] } | { key: number; change: Partial<Chosen> | null };

function reduce(chosen: Chosen[], action: Action): Chosen[] {
  if ('add' in action) return [...chosen, ...action.add];
  const { key, change } = action;
  if (!change) return chosen.filter((one) => one.key !== key);
  return chosen.map((one) => (one.key === key ? { ...one, ...change } : one));
}

/** The files of the open conversation. Chosen files are attached one after the other, in the order of choosing. */
export function useFiles(): Files {
  const { id, gauge, refresh } = useConversation();
  // There is no event for files; those of another tab are noticed by their weight.
  const loaded = useLoaded((signal) => listFiles(id, signal), [id, gauge?.breakdown.files]);
  const [chosen, change] = useReducer(reduce, []);
  const numbers = useRef(0);
  const line = useRef(Promise.resolve());
  const { reload } = loaded;

  const attach = useCallback(
    (one: Chosen, tokens: number | null) => {
      change({ key: one.key, change: { step: 'waits', error: undefined } });
      line.current = line.current.then(async () => {
        change({ key: one.key, change: { step: 'sent' } });
        try {
          await attachFile(id, { ...one, tokens }, one.idempotency);
          change({ key: one.key, change: null });
          reload();
          refresh();
        } catch (error) {
          change({ key: one.key, change: { step: 'refused', error } });
        }
      });
    },
    [id, reload, refresh],
  );
  const choose = useCallback(
    (files: Iterable<File>) => {
      const added = [...files].map((file): Chosen => {
        const type = typeOf(file.name, file.type);
        numbers.current += 1;
        const step = needsTokens(type) ? 'asks' : 'waits';
        return { key: numbers.current, file, name: nameOf(file.name), type, step, idempotency: randomKey() };
      });
      change({ add: added });
      for (const one of added) if (one.step === 'waits') attach(one, null);
    },
    [attach],
  );
  const again = useCallback(
    (one: Chosen) => {
      if (!needsTokens(one.type)) return attach(one, null);
      // Another weight makes another request.
      change({ key: one.key, change: { step: 'asks', error: undefined, idempotency: randomKey() } });
    },
    [attach],
  );
  const dismiss = useCallback((one: Chosen) => change({ key: one.key, change: null }), []);
  const remove = useCallback(
    async (file: string) => {
      await removeFile(id, file);
      reload();
      refresh();
    },
    [id, reload, refresh],
  );
  return { attached: loaded.value?.data ?? [], loaded, chosen, choose, weigh: attach, again, dismiss, remove };
}
