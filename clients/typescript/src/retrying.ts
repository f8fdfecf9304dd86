/** When a request is sent again, and after how long: one place for requests and for streams. */

import { ApiError, ConnectionFailedError, errorOf, problemIn, RETRIED } from "./errors.js";

/** The first request with our key still runs: what it answers is what the repeated one will. */
const STILL_RUNNING = "idempotency_in_progress";
const EVENT_STREAM = "text/event-stream";

export type Fetch = (request: Request, init?: RequestInit) => Promise<Response>;
export type Failure = ApiError | ConnectionFailedError;

/** How patient a client is; times are in milliseconds. */
export interface Retrying {
  /** How often a request is sent at most; 1 = never again. */
  attempts: number;
  /** After the first failure, doubled with each further one, and shortened by chance by up to a half. */
  firstPause: number;
  /** A service that asks for more patience than this is not waited for: its answer is thrown. */
  longestPause: number;
}

export const RETRYING: Retrying = { attempts: 5, firstPause: 500, longestPause: 30_000 };

/** Failures in a row. */
export class Patience {
  failures = 0;

  constructor(private readonly retrying: Retrying) {}

  /** Milliseconds until the next try, at least what the service asked for. Throws the failure that is the end of it. */
  after(failure: Failure): number {
    this.failures += 1;
    const asked = failure instanceof ApiError ? (failure.retryAfter ?? 0) : 0;
    const { attempts, firstPause, longestPause } = this.retrying;
    if (this.failures >= attempts || !isPassing(failure) || asked > longestPause) throw failure;
    const backedOff = Math.min(firstPause * 2 ** (this.failures - 1), longestPause);
    return Math.max(backedOff * (0.5 + Math.random() / 2), asked);
  }
}

function isPassing(failure: Failure): boolean {
  if (failure instanceof ConnectionFailedError) return true;
  return (RETRIED.has(failure.status) && failure.retryable) || failure.code === STILL_RUNNING;
}

/** Wait; an abort ends it. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => (clearTimeout(timer), reject(signal?.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", stop), resolve()), milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A promise, or after so many milliseconds without it a failed connection. */
export async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ConnectionFailedError(`no answer within ${milliseconds} ms`)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * One try: an answer whose whole body has arrived, or a stream that has begun.
 *
 * Throws an `ApiError` for what the service refuses, a `ConnectionFailedError` for a broken connection, and whatever the
 * caller's own signal was aborted with.
 */
export async function attempt(send: Fetch, request: Request, timeout: number): Promise<Response> {
  const ending = new AbortController();
  const signal = AbortSignal.any([request.signal, ending.signal]);
  const arrive = async () => {
    const response = await send(request.clone(), { signal });
    if (!response.ok) throw errorOf(response.status, problemIn(await response.text()), secondsIn(response));
    if (request.headers.get("accept") === EVENT_STREAM) return response;
    const body = response.status === 204 ? null : await response.arrayBuffer();
    return new Response(body, { status: response.status, headers: response.headers });
  };
  try {
    return await within(timeout, arrive());
  } catch (failure) {
    ending.abort();
    throw failed(failure, request.signal, request.url);
  }
}

/** The failure that a thrown value stands for, and at which address; an abort of the caller's stays what it is. */
export function failed(failure: unknown, signal?: AbortSignal, url?: string): unknown {
  if (signal?.aborted) return signal.reason;
  if (failure instanceof ApiError || failure instanceof ConnectionFailedError) return failure;
  const at = url ? ` at ${new URL(url).origin}` : "";
  return new ConnectionFailedError(`${toldOf(failure)}${at}`, { cause: failure });
}

/** What a thrown value says: `fetch` hides what happened in its cause. */
function toldOf(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure);
  const { cause } = failure;
  const why = cause instanceof Error ? cause.message || ("code" in cause && cause.code) : "";
  return why ? `${failure.message} (${why})` : failure.message;
}

/** A `fetch` that sends a request until it has its answer; every `POST` has one key over all tries. */
export function retryingFetch(
  send: Fetch,
  options: { retrying: Retrying; timeout: number; sleep: typeof sleep },
): (request: Request) => Promise<Response> {
  return async (request) => {
    withKey(request);
    const patience = new Patience(options.retrying);
    let mayBeDone = false;
    for (;;) {
      try {
        return await attempt(send, request, options.timeout);
      } catch (failure) {
        if (!(failure instanceof ApiError || failure instanceof ConnectionFailedError)) throw failure;
        // A deletion whose answer was lost may have been done: then what is deleted is no longer there.
        if (mayBeDone && failure instanceof ApiError && failure.status === 404)
          return new Response(null, { status: 204 });
        mayBeDone ||= request.method === "DELETE" && failure instanceof ConnectionFailedError;
        await options.sleep(patience.after(failure), request.signal);
      }
    }
  };
}

/** Give a `POST` its key, so that however often it is sent it has one effect. */
export function withKey(request: Request): void {
  if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
    request.headers.set("Idempotency-Key", newKey());
  }
}

/** A new idempotency key: also where a page is served without TLS, in which `crypto.randomUUID` is missing. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function secondsIn(response: Response): number | undefined {
  const seconds = Number.parseFloat(response.headers.get("retry-after") ?? "");
  return Number.isNaN(seconds) ? undefined : Math.max(seconds * 1000, 0);
}
