/** Requests to the service: same origin, JSON, problems as errors. */
import { randomKey } from './random-key';
import type { Problem } from './types';

/** An export is served by the service itself; the page's own server passes on only what is under /api. */
export const IS_EXPORT = process.env.NEXT_PUBLIC_BUILD !== 'standalone';
export const API = IS_EXPORT ? '' : '/api';
export const SESSION = IS_EXPORT ? '/ui/session' : '/session';

export type Query = Record<string, string | number | boolean | null | undefined>;

interface Options {
  query?: Query;
  body?: unknown;
  /** Sent unchanged and with its own type, instead of a body. */
  file?: { data: Blob; type: string };
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** A refusal or failure of the service. `code` is stable, `message` is for people. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly problem: Problem | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

let spoken = 'en';

/** Sets the language in which the service is asked to answer from now on. */
export function speak(language: string): void {
  spoken = language;
}

/** Sets the function that is called when the service asks for a login. */
const loginWanted = new EventTarget();

export function onLoginWanted(listener: () => void): () => void {
  loginWanted.addEventListener('wanted', listener);
  return () => loginWanted.removeEventListener('wanted', listener);
}

function wantLogin(): void {
  loginWanted.dispatchEvent(new Event('wanted'));
}

export function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${API}${path}${search ? `?${search}` : ''}`;
}

/** The answer's JSON; `undefined` for an empty one. Throws `ApiError`. */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const response = await send(method, path, options);
  if (response.status === 204) return undefined as T;
  try {
    return (await response.json()) as T;
  } catch (error) {
    if (options.signal?.aborted) throw error;
    // The answer broke off, or it is not the service's: the login page of a network, for example.
    throw new ApiError(0, 'unreachable', 'unreachable');
  }
}

export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { 'Accept-Language': spoken, ...options.headers };
  if (method !== 'GET') headers['Content-Type'] = options.file?.type ?? 'application/json';
  if (method === 'POST') headers['Idempotency-Key'] ??= randomKey();
  let response: Response;
  try {
    response = await fetch(address(path, options.query), {
      method,
      headers,
      body: options.file?.data ?? (options.body === undefined ? (method === 'POST' ? '{}' : undefined) : JSON.stringify(options.body)),
      signal: options.signal,
      credentials: 'same-origin',
      cache: 'no-store',
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, 'unreachable', 'unreachable');
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response: Response): Promise<ApiError> {
  if (response.status === 401) wantLogin();
  const problem = (await response.json().catch(() => null)) as Problem | null;
  const detail = problem?.detail || problem?.title || response.statusText || `HTTP ${response.status}`;
  return new ApiError(response.status, problem?.code ?? 'unknown', detail, problem);
}

export interface Told {
  code: string;
  text: string;
  problem: Partial<Problem> | null;
}

/** What is known about any error, also about one whose message is a problem as JSON (streams end with such errors). */
export function toldOf(error: unknown): Told {
  if (error instanceof ApiError) return { code: error.code, text: error.message, problem: error.problem };
  const text = error instanceof Error ? error.message : String(error);
  try {
    const problem = JSON.parse(text) as Partial<Problem>;
    if (typeof problem.detail === 'string') return { code: problem.code ?? 'unknown', text: problem.detail, problem };
  } catch {
    // It is not JSON, so the message itself is used.
  }
  return { code: 'unknown', text, problem: null };
}
