/** A conversation's events from now on, over broken connections too: each once, in order. */
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { ApiError, send } from './client';
import type { Event } from './types';

const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 15_000;

interface Follower {
  /** How many of the events so far come first. */
  newest: number;
  onEvent: (event: Event) => void;
  /** Whether events come, or the connection is lost and tried again. */
  onLive?: (live: boolean) => void;
}

/** Follow until the signal is aborted, or the conversation is gone. */
export async function followEvents(id: string, follower: Follower, signal: AbortSignal): Promise<void> {
  let last: string | null = null;
  let pause = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      const place: { after: string } | { newest: number } =
        last === null ? { newest: follower.newest } : { after: last };
      const response = await send('GET', `/conversations/${id}/events`, { query: place, signal });
      follower.onLive?.(true);
      pause = FIRST_PAUSE;
      for await (const event of eventsOf(response)) {
        last = event.id;
        follower.onEvent(event);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) return;
    }
    follower.onLive?.(false);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

async function* eventsOf(response: Response): AsyncGenerator<Event> {
  if (!response.body) return;
  const frames = response.body
    .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream());
  const reader = frames.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      if (value.data) yield JSON.parse(value.data) as Event;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
