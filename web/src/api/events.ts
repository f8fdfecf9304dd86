/** A conversation's events from now on, each once and in order, even over broken connections. */
import { ApiError, send } from './client';
import { framesOf } from './frames';
import type { Event } from './types';

const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 15_000;
/** A browser has only six connections to a host, for all its tabs together; a page hidden for this long gives its own back. */
const UNSEEN = 5_000;

interface Follower {
  /** How many of the earlier events come first. */
  newest: number;
  onEvent: (event: Event) => void;
  /** Called with whether events come, or the connection was lost and is tried again. */
  onLive?: (live: boolean) => void;
  /** Called when some events can no longer be had: as many as at first come again. */
  onMissed?: () => void;
  /** Called when the conversation no longer exists. */
  onGone?: (error: unknown) => void;
}

/** Follow until the signal is aborted, or the conversation is gone. */
export async function followEvents(id: string, follower: Follower, signal: AbortSignal): Promise<void> {
  let last: string | null = null;
  let pause = FIRST_PAUSE;
  while (!signal.aborted) {
    const watch = whileSeen(signal);
    try {
      const place: { after: string } | { newest: number } =
        last === null ? { newest: follower.newest } : { after: last };
      const response = await send('GET', `/conversations/${id}/events`, { query: place, signal: watch.signal });
      follower.onLive?.(true);
      pause = FIRST_PAUSE;
      for await (const event of eventsOf(response)) {
        last = event.id;
        follower.onEvent(event);
      }
    } catch (error) {
      if (signal.aborted) return;
      const status = error instanceof ApiError ? error.status : 0;
      if (status === 404) follower.onGone?.(error);
      if ([401, 403, 404].includes(status)) return;
      // Events after the last one seen are no longer stored.
      if (status === 422) {
        last = null;
        follower.onMissed?.();
      }
    } finally {
      watch.end();
    }
    follower.onLive?.(false);
    pause = (await (document.hidden ? seen() : rested(pause))) ? FIRST_PAUSE : Math.min(pause * 2, LONGEST_PAUSE);
  }
}

/** A signal that is aborted with another one, or when nobody looks at the page. */
function whileSeen(signal: AbortSignal): { signal: AbortSignal; end: () => void } {
  const control = new AbortController();
  const abort = () => control.abort();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(abort, UNSEEN);
  };
  look();
  signal.addEventListener('abort', abort);
  document.addEventListener('visibilitychange', look);
  const end = () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    document.removeEventListener('visibilitychange', look);
  };
  return { signal: control.signal, end };
}

/** Waits for so many milliseconds, or until the browser has a network again, and tells whether it has. */
const rested = (pause: number) =>
  new Promise<boolean>((resolve) => {
    const end = (event?: unknown) => {
      clearTimeout(timer);
      window.removeEventListener('online', end);
      resolve(event !== undefined);
    };
    const timer = setTimeout(end, pause);
    window.addEventListener('online', end);
  });

/** Waits until somebody looks at the page. */
const seen = () => new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));

async function* eventsOf(response: Response): AsyncGenerator<Event> {
  if (!response.body) return;
  const reader = framesOf(response.body);
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
