'use client';

import { useCallback, useEffect, useRef, useState } from 'react';
import { interrupt } from '@/api/resources';
import type { Message } from '@/api/types';
import { useConversation } from '@/state/conversation';
import type { History } from '@/state/history';
import type { Handlers, Reply } from './parts';
import { ask, askAgain, follow } from './wire';

export interface Exchange {
  /** A turn runs, or what it brought is not in the history yet. */
  active: boolean;
  /** What was asked, until it is in the history. */
  question: string | null;
  reply: Reply | null;
  /** What the history had when the turn began: replies after it are still shown as `reply`. */
  base: number;
  error: unknown;
  stopping: boolean;
  send: (text: string) => void;
  stop: () => void;
  regenerate: (reply: Message) => void;
  dismiss: () => void;
}

interface Running {
  question: string | null;
  reply: Reply | null;
  /** `null`: the last question, whichever it is. */
  base: number | null;
}

type Start = (handlers: Handlers, signal: AbortSignal) => Promise<Reply | null>;

const NOTHING_YET = Number.MAX_SAFE_INTEGER;

/** The running turn, whoever began it. Once it is over it is in the history, and forgotten here. */
export function useExchange(history: History): Exchange {
  const { id, setGauge, onEvent } = useConversation();
  const [running, setRunning] = useState<Running | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [stopping, setStopping] = useState(false);
  const busy = useRef(false);
  const control = useRef(new AbortController());
  const read = useRef(history);
  read.current = history;

  const run = useCallback(
    async (begun: Running, start: Start) => {
      if (busy.current) return;
      busy.current = true;
      const { signal } = control.current;
      setError(null);
      setStopping(false);
      let shown = begun;
      const show = (change: Partial<Running>) => {
        if (!signal.aborted) setRunning((shown = { ...shown, ...change }));
      };
      if (begun.question !== null) show({});
      try {
        const reply = await start({ onReply: (next) => show({ reply: next }), onGauge: setGauge }, signal);
        if (!reply) {
          busy.current = false;
          return;
        }
      } catch (failure) {
        if (!signal.aborted) setError(failure);
      }
      busy.current = false;
      if (signal.aborted) return;
      await read.current.newer();
      await read.current.again();
      if (busy.current) return;
      setRunning(null);
      setStopping(false);
    },
    [setGauge],
  );

  const takeUp = useCallback(() => {
    const start: Start = (handlers, signal) => follow(id, handlers, signal);
    void run({ question: null, reply: null, base: null }, start);
  }, [id, run]);

  // A turn may run already, begun before a reload or by another tab; another may begin one later.
  useEffect(() => {
    control.current = new AbortController();
    busy.current = false;
    const mine = control.current;
    takeUp();
    return () => mine.abort();
  }, [takeUp]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const leave = onEvent((event) => {
      if (event.type !== 'message.created' || event.data.role !== 'user') return;
      clearTimeout(timer);
      timer = setTimeout(takeUp, 150);
    });
    return () => {
      clearTimeout(timer);
      leave();
    };
  }, [onEvent, takeUp]);

  const send = useCallback(
    (text: string) => {
      const base = read.current.messages.at(-1)?.seq ?? 0;
      void run({ question: text, reply: null, base }, (handlers, signal) => ask(id, text, handlers, signal));
    },
    [id, run],
  );
  const regenerate = useCallback(
    (reply: Message) => {
      const begun = { question: '', reply: null, base: reply.seq - 1 };
      void run(begun, (handlers, signal) => askAgain(id, reply.id, handlers, signal));
    },
    [id, run],
  );
  const stop = useCallback(() => {
    setStopping(true);
    interrupt(id).catch(() => setStopping(false));
  }, [id]);
  const dismiss = useCallback(() => setError(null), []);

  const lastQuestion = history.messages.findLast((message) => message.role === 'user')?.seq;
  const base = running?.base ?? lastQuestion ?? NOTHING_YET;
  const isStored = history.messages.some((message) => message.seq > base && message.role === 'user');
  return {
    active: running !== null,
    question: running?.question && !isStored ? running.question : null,
    reply: running?.reply ?? null,
    base,
    error,
    stopping: stopping && running !== null,
    send,
    stop,
    regenerate,
    dismiss,
  };
}
