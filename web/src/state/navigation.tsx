'use client';

import { useSearchParams } from 'next/navigation';
import { createContext, type ReactNode, useCallback, useContext, useMemo } from 'react';
import { isAtPanel, markHere } from './panels';

export const VIEWS = ['chat', 'state', 'context', 'stats', 'timeline', 'settings'] as const;
export type View = (typeof VIEWS)[number];

export interface Place {
  /** The conversation's id; `null` for one that is about to begin. */
  conversation: string | null;
  view: View;
  /** The number of a message to show. */
  message: number | null;
}

interface Navigation extends Place {
  open: (place: Partial<Place>, replace?: boolean) => void;
}

const Here = createContext<Navigation | null>(null);
const UUID = /^[0-9a-f-]{36}$/;
/** The id of no conversation: a broken link is treated like one to a conversation that is gone. */
const NOBODY = '00000000-0000-0000-0000-000000000000';

/** The reader's place is in the query, so that a static page knows it, a reload keeps it, and "back" works. */
export function NavigationProvider({ children }: { children: ReactNode }) {
  const search = useSearchParams();
  const given = search.get('c');
  const conversation = given && (UUID.test(given) ? given : NOBODY);
  const view = VIEWS.find((one) => one === search.get('view')) ?? 'chat';
  const number = Number(search.get('m'));
  const message = Number.isSafeInteger(number) && number > 0 ? number : null;

  const open = useCallback(
    (place: Partial<Place>, replace = false) => {
      const next: Place = { conversation, view, message: null, ...place };
      const query = new URLSearchParams();
      if (next.conversation) query.set('c', next.conversation);
      if (next.view !== 'chat') query.set('view', next.view);
      if (next.message) query.set('m', String(next.message));
      const text = query.toString();
      const url = text ? `?${text}` : window.location.pathname;
      // Whoever goes on from a panel leaves its entry behind; a change of the place below it keeps that entry.
      if (replace) window.history.replaceState(markHere(), '', url);
      else window.history[isAtPanel() ? 'replaceState' : 'pushState'](null, '', url);
    },
    [conversation, view],
  );

  const value = useMemo(() => ({ conversation, view, message, open }), [conversation, view, message, open]);
  return <Here.Provider value={value}>{children}</Here.Provider>;
}

export function useNavigation(): Navigation {
  const here = useContext(Here);
  if (!here) throw new Error('no navigation');
  return here;
}
