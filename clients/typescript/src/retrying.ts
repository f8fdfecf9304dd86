/** When a request is sent again, and after how long: one place for requests and for streams. */

import { ApiError, ConnectionFailedError, errorOf, problemIn, RETRIED } from "./errors.js";

/** The first request with our key still runs; the repeated one will get the same answer. */
const STILL_RUNNING = "idempotency_in_progress";
const EVENT_STREAM = "text/event-stream";

export type Fetch = (request: Request, init?: RequestInit) => Promise<Response>;
export type Failure = ApiError | ConnectionFailedError;

/** How patient a client is; all times are in milliseconds. */
export interface Retrying {
  /** The most times that a request is sent; 1 means without retries. */
  attempts: number;
  /** The pause after the first failure. Each further failure doubles it; chance shortens it by up to a half. */
  firstPause: number;
  /** If a service asks for a longer pause than this, the client does not wait, and its answer is thrown. */
  longestPause: number;
}

export const RETRYING: Retrying = { attempts: 5, firstPause: 500, longestPause: 30_000 };

/** Counts failures in a row. */
export class Patience {
  failures = 0;

  constructor(private readonly retrying: Retrying) {}

  /** Milliseconds until the next try, at least those that the service asked for. Throws the failure after the last. */
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
  const isTemporary = failure.isOfProxy || (RETRIED.has(failure.status) && failure.retryable);
  return isTemporary || failure.code === STILL_RUNNING;
}

/** Wait; an abort ends the waiting. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => (clearTimeout(timer), reject(signal?.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", stop), resolve()), milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** The result of a promise, or a failed connection if it takes more than so many milliseconds. */
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
 * Throws an `ApiError` if the service refuses, a `ConnectionFailedError` for a broken connection, and the reason of the
 * caller's own signal if that was aborted.
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

/** The failure for a thrown value at an address; an abort by the caller stays what it is. */
export function failed(failure: unknown, signal?: AbortSignal, url?: string): unknown {
  if (signal?.aborted) return signal.reason;
  if (failure instanceof ApiError || failure instanceof ConnectionFailedError) return failure;
  const at = url ? ` at ${new URL(url).origin}` : "";
  return new ConnectionFailedError(`${toldOf(failure)}${at}`, { cause: failure });
}

/** The message of a thrown value: `fetch` hides what happened in its cause. */
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
        // A deletion whose answer was lost may have taken effect: then the second one finds nothing, as it should.
        if (mayBeDone && failure instanceof ApiError && failure.status === 404)
          return new Response(null, { status: 204 });
        // What has no pin answers as well as what had one, so a 404 then means that there is no such message.
        const isDeletion = request.method === "DELETE" && !request.url.endsWith("/pin");
        const isLost = failure instanceof ConnectionFailedError || failure.isOfProxy;
        mayBeDone ||= isDeletion && isLost;
        await options.sleep(patience.after(failure), request.signal);
      }
    }
  };
}

/** Give a `POST` a key, so that it has one effect however many times it is sent. */
export function withKey(request: Request): void {
  if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
    request.headers.set("Idempotency-Key", newKey());
  }
}

/** A new idempotency key. `crypto.randomUUID` is missing on pages that are served without TLS. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function secondsIn(response: Response): number | undefined {
  const seconds = Number.parseFloat(response.headers.get("retry-after") ?? "");
  return Number.isNaN(seconds) ? undefined : Math.max(seconds * 1000, 0);
}
