'use client';

import { useCallback, useEffect, useRef, useState } from 'react';
import { ApiError } from '@/api/client';
import { randomKey } from '@/api/random-key';
import { interrupt, listMessages } from '@/api/resources';
import type { Message } from '@/api/types';
import { useConversation } from '@/state/conversation';
import { giveBack, keepSent, takeArrived } from '@/state/drafts';
import { type History, lastSeq } from '@/state/history';
import { isUnreachable } from '@/ui/loaded';
import type { Handlers, Reply } from './parts';
import { ask, askAgain, follow } from './wire';

export interface Exchange {
  /** A turn runs, or its result is not in the history yet. */
  active: boolean;
  /** The question, until it is in the history. */
  question: string | null;
  /** The running reply, or what had come of one that failed. */
  reply: Reply | null;
  /** The history's last message when the turn began: replies after it are still shown as `reply`. */
  base: number;
  error: unknown;
  stopping: boolean;
  send: (text: string) => void;
  stop: () => void;
  /** Write a reply again, or answer a message that has none. */
  regenerate: (message: Message) => void;
}

interface Running {
  question: string | null;
  reply: Reply | null;
  /** `null` for the last question, whichever it is. */
  base: number | null;
}

/** The running request: for a turn that may run elsewhere, or within a turn. */
interface Request {
  control: AbortController;
  isTurn: boolean;
  /** A message was sent, and nobody knows yet whether it arrived. */
  isOnItsWay: boolean;
  /** The reader has left the chat: the request ends once its message has arrived. */
  isLeft: boolean;
}

type Start = (handlers: Handlers, signal: AbortSignal, show: (change: Partial<Running>) => void) => Promise<Reply | null>;

const NOTHING_YET = Number.MAX_SAFE_INTEGER;
const SOON = 300;
/** So many messages show whether a question is stored. */
const FEW = 10;

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Whether a text that was sent after a message is among these; another tab may have sent another one. */
const isAmong = (messages: Message[], text: string, base: number): boolean =>
  messages.some((message) => message.seq > base && message.role === 'user' && message.content === text);

/** The messages of a turn that ended; whoever looks further up meanwhile stays there. */
async function sinceThen(id: string, base: number, { atEnd, newer }: History): Promise<Message[]> {
  if (atEnd) return newer();
  return base === NOTHING_YET ? [] : listMessages(id, 'asc', base, FEW).then((page) => page.data, () => []);
}

/** The running turn, whoever began it. Once it ends it is in the history, and is forgotten here. */
export function useExchange(history: History, onStopFailed: (error: unknown) => void): Exchange {
  const { id, live, setGauge, onEvent } = useConversation();
  const [running, setRunning] = useState<Running | null>(null);
  /** What had come of a reply that failed: nobody stores it, and its reader may be in the middle of it. */
  const [left, setLeft] = useState<Reply | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [stopping, setStopping] = useState(false);
  const current = useRef<Request | null>(null);
  const read = useRef(history);
  /** A message of which nobody knows whether it arrived; sent again as the same message, it is stored once. */
  const unsure = useRef<{ text: string; key: string } | null>(null);
  read.current = history;

  const run = useCallback(
    async (begun: Running, start: Start) => {
      if (current.current?.isTurn) {
        // Somebody else's turn has just begun, and the field did not show it yet.
        if (begun.question) giveBack(id, begun.question);
        return;
      }
      current.current?.control.abort();
      const mine: Request = {
        control: new AbortController(),
        isTurn: begun.question !== null,
        isOnItsWay: Boolean(begun.question),
        isLeft: false,
      };
      current.current = mine;
      const { signal } = mine.control;
      let shown = begun;
      const show = (change: Partial<Running>) => {
        if (signal.aborted) return;
        if (!mine.isTurn) setError(null);
        setLeft(null);
        mine.isTurn = true;
        setRunning((shown = { ...shown, ...change }));
        if (mine.isOnItsWay) keepSent(id, begun.question, shown.base ?? NOTHING_YET);
      };
      if (mine.isTurn) {
        setError(null);
        setStopping(false);
        show({});
      }
      let reply: Reply | null = null;
      let failure: unknown = null;
      try {
        const onArrived = () => {
          if (mine.isOnItsWay) keepSent(id, null);
          mine.isOnItsWay = false;
          if (mine.isLeft) mine.control.abort();
        };
        const onReply = (next: Reply) => show({ reply: next });
        reply = await start({ onArrived, onReply, onGauge: setGauge }, signal, show);
      } catch (error) {
        // After a 401 the login replaces all this; the user's text must not be lost with it.
        if (!signal.aborted || error instanceof ApiError) failure = error;
        if (!signal.aborted && mine.isTurn) setError(error);
      }
      if (mine.isTurn || reply) {
        const base = shown.base ?? NOTHING_YET;
        const messages = signal.aborted ? [] : await sinceThen(id, base, read.current);
        const isStored = isAmong(messages, begun.question ?? '', base);
        if (mine.isOnItsWay) keepSent(id, null);
        if (failure && begun.question && !isStored) giveBack(id, begun.question);
        if (isStored || !isUnreachable(failure)) unsure.current = null;
        if (signal.aborted) return;
        await read.current.again();
        if (signal.aborted) return;
        if (failure) setLeft(shown.reply);
        setRunning(null);
        setStopping(false);
      }
      if (current.current === mine) current.current = null;
      return failure;
    },
    [id, setGauge],
  );

  const takeUp = useCallback(() => {
    const start: Start = (handlers, signal) => follow(id, handlers, signal);
    void run({ question: null, reply: null, base: null }, start);
  }, [id, run]);

  const { messages } = history;
  useEffect(() => takeArrived(id, (text, base) => isAmong(messages, text, base)), [id, messages]);

  // A turn may run already, begun before a reload, by another tab, or before the connection was lost.
  const isAway = isUnreachable(history.error);
  useEffect(() => {
    if (isAway) return;
    setError((before: unknown) => (isUnreachable(before) ? null : before));
    takeUp();
  }, [takeUp, live, isAway]);
  useEffect(
    () => () => {
      const mine = current.current;
      if (mine?.isOnItsWay) mine.isLeft = true;
      else mine?.control.abort();
      current.current = null;
    },
    [takeUp],
  );
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const leave = onEvent((event) => {
      // The message was asked again in another tab, and has its reply.
      if (event.type === 'reply.completed') setError(null);
      const begins = event.type === 'message.superseded' || (event.type === 'message.created' && event.data.role === 'user');
      if (!begins) return;
      clearTimeout(timer);
      timer = setTimeout(takeUp, 150);
    });
    return () => {
      clearTimeout(timer);
      leave();
    };
  }, [onEvent, takeUp]);

  /** Show the turn of somebody else that came first. */
  const afterOther = useCallback(
    (failure: unknown) => {
      if (failure instanceof ApiError && failure.code === 'turn_in_progress') takeUp();
    },
    [takeUp],
  );
  const send = useCallback(
    (text: string) => {
      const { atEnd, latest } = read.current;
      const base = atEnd ? lastSeq(read.current) : NOTHING_YET;
      void run({ question: text, reply: null, base }, async (handlers, signal, show) => {
        // Readers who look further up are taken to the end, where their message is.
        if (!atEnd) show({ base: await latest() });
        if (unsure.current?.text !== text) unsure.current = { text, key: randomKey() };
        return ask(id, unsure.current.key, text, handlers, signal);
      }).then(afterOther);
    },
    [id, run, afterOther],
  );
  const regenerate = useCallback(
    (message: Message) => {
      const begun = { question: '', reply: null, base: message.role === 'user' ? message.seq : message.seq - 1 };
      void run(begun, (handlers, signal) => askAgain(id, message.id, handlers, signal)).then(afterOther);
    },
    [id, run, afterOther],
  );
  const stop = useCallback(async () => {
    const mine = current.current;
    setStopping(true);
    try {
      // The turn of what was just sent may not have begun.
      while (current.current === mine && !(await interrupt(id)).interrupted) await pause(SOON);
    } catch (error) {
      setStopping(false);
      if (current.current === mine) onStopFailed(error);
    }
  }, [id, onStopFailed]);

  const lastQuestion = history.messages.findLast((message) => message.role === 'user')?.seq;
  const base = running?.base ?? lastQuestion ?? NOTHING_YET;
  const isStored = isAmong(history.messages, running?.question ?? '', base);
  return {
    active: running !== null,
    question: running?.question && !isStored ? running.question : null,
    reply: running ? running.reply : left,
    base,
    error,
    stopping: stopping && running !== null,
    send,
    stop: () => void stop(),
    regenerate,
  };
}
