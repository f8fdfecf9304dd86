'use client';

import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useReducer, useRef } from 'react';
import { followEvents } from '@/api/events';
import { getConversation } from '@/api/resources';
import type { Compaction, Conversation, Event, Gauge } from '@/api/types';

export interface RunningCompaction {
  id: string;
  trigger: string;
  since: number;
}

interface State {
  conversation?: Conversation;
  gauge?: Gauge;
  error?: unknown;
  /** Whether events come as they happen. */
  live: boolean;
  compacting: RunningCompaction | null;
  /** The newest notification in words. */
  notification: string | null;
}

/** Counts of events: views that show such things load them again when their count changes. */
export interface Revisions {
  messages: number;
  changed: number;
  compactions: number;
  states: number;
}

interface Held extends State {
  revisions: Revisions;
}

type Action =
  | { type: 'conversation'; conversation: Conversation }
  | { type: 'gauge'; gauge: Gauge }
  | { type: 'error'; error: unknown }
  | { type: 'live'; live: boolean }
  | { type: 'event'; event: Event }
  | { type: 'compactions'; found: Compaction[] }
  | { type: 'missed' }
  | { type: 'gone'; error: unknown }
  | { type: 'all' };

interface Live extends Held {
  id: string;
  setGauge: (gauge: Gauge) => void;
  setConversation: (conversation: Conversation) => void;
  /** The compactions as they are stored: one may have begun, or ended, while no events came. */
  noteCompactions: (found: Compaction[]) => void;
  /** Read everything again, and tell every view that shows it. */
  refresh: () => void;
  onEvent: (listener: (event: Event) => void) => () => void;
}

const NONE: Revisions = { messages: 0, changed: 0, compactions: 0, states: 0 };
const EVERYTHING = Object.keys(NONE) as (keyof Revisions)[];
const Context = createContext<Live | null>(null);

function moved(held: Held, names: (keyof Revisions)[]): Revisions {
  const revisions = { ...held.revisions };
  for (const name of names) revisions[name] += 1;
  return revisions;
}

function afterEvent(held: Held, event: Event): Held {
  const notification = event.notification ? event.notification.message : held.notification;
  const [kind, what] = event.type.split('.') as [string, string];
  if (kind === 'compaction') {
    const id = String(event.data.compaction_id ?? '');
    const begins = what === 'queued' || what === 'started';
    const compacting = begins
      ? { id, trigger: String(event.data.trigger ?? ''), since: held.compacting?.id === id ? held.compacting.since : Date.now() }
      : null;
    const names: (keyof Revisions)[] = what === 'applied' ? ['compactions', 'states'] : ['compactions'];
    return { ...held, notification, compacting, revisions: moved(held, names) };
  }
  if (kind === 'verification') {
    return { ...held, notification, revisions: moved(held, ['states']) };
  }
  if (kind === 'conversation') {
    return { ...held, notification, revisions: moved(held, ['states', 'changed', 'compactions']) };
  }
  if (what === 'erased' || what === 'superseded') {
    return { ...held, notification, revisions: moved(held, ['messages', 'changed']) };
  }
  return { ...held, notification, revisions: moved(held, ['messages']) };
}

const UNDER_WAY = new Set(['queued', 'running']);

function afterReading(held: Held, found: Compaction[]): Held {
  const { compacting } = held;
  const running = found.find((one) => UNDER_WAY.has(one.status));
  if (running?.id === compacting?.id) return held;
  if (running) {
    const since = Math.min(Date.now(), Date.parse(running.requested_at));
    return { ...held, compacting: { id: String(running.id), trigger: running.trigger, since } };
  }
  return found.some((one) => one.id === compacting?.id) ? { ...held, compacting: null } : held;
}

function reduce(held: Held, action: Action): Held {
  switch (action.type) {
    case 'conversation':
      return { ...held, conversation: action.conversation, gauge: action.conversation.context, error: undefined };
    case 'gauge':
      return { ...held, gauge: action.gauge };
    case 'error':
      return { ...held, error: action.error };
    case 'live':
      return { ...held, live: action.live };
    case 'event':
      return afterEvent(held, action.event);
    case 'compactions':
      return afterReading(held, action.found);
    case 'missed':
      // What ended meanwhile is told by none of the events that come.
      return { ...held, compacting: null };
    case 'gone':
      return { ...held, conversation: undefined, error: action.error };
    case 'all':
      return { ...held, revisions: moved(held, EVERYTHING) };
  }
}

/** The open conversation: its record, its gauge, and its events as they happen, from any tab or process. */
export function ConversationProvider({ id, children }: { id: string; children: ReactNode }) {
  const [held, dispatch] = useReducer(reduce, {
    live: false,
    compacting: null,
    notification: null,
    revisions: NONE,
  });
  const listeners = useRef(new Set<(event: Event) => void>());
  const wanted = useRef<ReturnType<typeof setTimeout> | null>(null);

  /** How many readings were begun, and the newest of which something was shown: answers may overtake each other. */
  const rounds = useRef({ begun: 0, shown: 0 });

  const read = useCallback(() => {
    const round = (rounds.current.begun += 1);
    const show = (action: Action) => {
      if (round < rounds.current.shown) return;
      rounds.current.shown = round;
      dispatch(action);
    };
    return getConversation(id).then(
      (conversation) => show({ type: 'conversation', conversation }),
      (error: unknown) => show({ type: 'error', error }),
    );
  }, [id]);

  useEffect(() => {
    const control = new AbortController();
    void read();
    // Several events come together; one reading is enough for them.
    const readSoon = () => {
      wanted.current ??= setTimeout(() => {
        wanted.current = null;
        void read();
      }, 120);
    };
    const onEvent = (event: Event) => {
      dispatch({ type: 'event', event });
      for (const listener of listeners.current) listener(event);
      readSoon();
    };
    let wasLost = false;
    const onLive = (live: boolean) => {
      dispatch({ type: 'live', live });
      // There may be no event for what happened in between.
      if (live && wasLost) {
        dispatch({ type: 'all' });
        readSoon();
      }
      wasLost = !live;
    };
    // Nobody is told of a title or of settings that were changed in another window.
    window.addEventListener('focus', readSoon);
    const onMissed = () => dispatch({ type: 'missed' });
    const onGone = (error: unknown) => dispatch({ type: 'gone', error });
    void followEvents(id, { newest: 0, onEvent, onLive, onMissed, onGone }, control.signal);
    return () => {
      control.abort();
      window.removeEventListener('focus', readSoon);
      if (wanted.current) clearTimeout(wanted.current);
      wanted.current = null;
    };
  }, [id, read]);

  // The same functions for as long as the conversation is open: effects depend on them.
  const stable = useMemo(
    () => ({
      id,
      setGauge: (gauge: Gauge) => dispatch({ type: 'gauge', gauge }),
      setConversation: (conversation: Conversation) => {
        // It is what became of a change: readings that were begun before do not have it.
        rounds.current.shown = rounds.current.begun += 1;
        dispatch({ type: 'conversation', conversation });
      },
      noteCompactions: (found: Compaction[]) => dispatch({ type: 'compactions', found }),
      refresh: () => {
        dispatch({ type: 'all' });
        void read();
      },
      onEvent: (listener: (event: Event) => void) => {
        listeners.current.add(listener);
        return () => void listeners.current.delete(listener);
      },
    }),
    [id, read],
  );
  const value = useMemo<Live>(() => ({ ...held, ...stable }), [held, stable]);
  return <Context.Provider value={value}>{children}</Context.Provider>;
}

export function useConversation(): Live {
  const live = useContext(Context);
  if (!live) throw new Error('no conversation');
  return live;
}

/** Whether events of a conversation come, if one is open. */
export const useIsLive = (): boolean => useContext(Context)?.live ?? false;
