/** Passes a request on to the service with the key, and the answer back as it comes. */
import { ruleOf } from './allowed';
import { bytesOf } from './body';
import { identityOf } from './identity';
import { isOwnPage } from './own-page';
import { problem } from './problem';
import { isKnownHost, type Settings, settings } from './settings';

const TAKEN = ['accept', 'accept-language', 'content-type', 'idempotency-key', 'if-match', 'last-event-id', 'x-request-id'];
const GIVEN = ['content-type', 'content-disposition', 'content-security-policy', 'etag', 'retry-after', 'x-request-id', 'x-vercel-ai-ui-message-stream', 'location'];
const LARGEST_BODY = 8_000_000;
/** The most bytes of a file, which is passed on whole. */
const LARGEST_FILE = 25_000_000;
const KEY_REFUSED =
  'The service does not take the key of this page\'s server: whoever runs it makes another with `throughline keys create` (THROUGHLINE_API_KEY).';
const AWAY = 'The service does not answer.';
const MISSING = 'No such conversation.';
const FILES = /^\/conversations\/[0-9a-f-]{36}\/files$/;

type Fetch = typeof fetch;

/** The answer to a request under `/api`. */
export async function pass(request: Request, given: Settings = settings(), ask: Fetch = fetch): Promise<Response> {
  const identity = identityOf(request.headers, given);
  if (!identity.known) return problem(401, 'unauthenticated', 'Log in first.');
  if (given.login.kind === 'none' && !isKnownHost(request.headers.get('host') ?? '', given)) {
    return problem(421, 'host_not_allowed', 'Without a login this server answers on localhost alone: see WEB_ALLOWED_HOSTS.');
  }
  if (!isOwnPage(request)) return problem(403, 'forbidden', 'This request does not come from the page.');
  const url = new URL(request.url);
  const path = url.pathname.replace(/^\/api/, '');
  const rule = ruleOf(request.method, path);
  if (!rule) return problem(404, 'not_found', 'There is no such path here.');

  const headers = headersFor(request, given);
  const query = new URLSearchParams(url.search);
  let body = request.method === 'GET' || request.method === 'HEAD' ? undefined : await bodyOf(request, FILES.test(path));
  if (body === null) return problem(413, 'body_too_large', 'The body is too large.');
  if (identity.user !== null) {
    if (rule.check === 'list') query.set('user_id', identity.user);
    if (rule.check === 'create') {
      body = ownedBy(identity.user, typeof body === 'string' ? body : '');
      if (body === null) return problem(400, 'unreadable', 'The body must be a JSON object.');
    }
    if (rule.check === 'conversation') {
      const refusal = await refusalOf(rule.conversation, identity.user, given, headers, ask);
      if (refusal) return refusal;
    }
  }
  const target = `${given.service}${path}${query.size ? `?${query}` : ''}`;
  try {
    const answer = await ask(target, {
      method: request.method,
      headers,
      body: body === undefined ? undefined : body,
      signal: request.signal,
      redirect: 'manual',
      cache: 'no-store',
    });
    return passedOn(answer);
  } catch {
    return problem(502, 'dependency_unavailable', AWAY);
  }
}

function passedOn(answer: Response): Response {
  // The refused key is this server's: a 401 would tell the browser to log in, which helps nobody.
  if (answer.status === 401) return problem(502, 'dependency_unavailable', KEY_REFUSED);
  return new Response(answer.body, { status: answer.status, headers: headersOf(answer) });
}

function headersFor(request: Request, given: Settings): Headers {
  const headers = new Headers();
  for (const name of TAKEN) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  if (given.key) headers.set('authorization', `Bearer ${given.key}`);
  return headers;
}

function headersOf(answer: Response): Headers {
  const headers = new Headers({ 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no', 'x-content-type-options': 'nosniff' });
  for (const name of GIVEN) {
    const value = answer.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return headers;
}

/** The body's text, or a file's bytes; `null` if it is too large. */
async function bodyOf(request: Request, isFile: boolean): Promise<string | Uint8Array<ArrayBuffer> | null | undefined> {
  if (!request.body) return undefined;
  const bytes = await bytesOf(request, isFile ? LARGEST_FILE : LARGEST_BODY);
  return bytes === null || isFile ? bytes : new TextDecoder().decode(bytes);
}

/** The body of a new conversation with its owner, whatever owner it named; `null` if it is not an object. */
function ownedBy(user: string, body: string): string | null {
  try {
    const told: unknown = JSON.parse(body || '{}');
    if (typeof told !== 'object' || told === null || Array.isArray(told)) return null;
    return JSON.stringify({ ...told, user_id: user });
  } catch {
    return null;
  }
}

/**
 * The answer if a conversation is not the user's, or if that cannot be told; `null` if it is theirs.
 *
 * The service is asked each time. While it does not answer, the conversation is not called missing: the page would close it.
 */
async function refusalOf(id: string, user: string, given: Settings, headers: Headers, ask: Fetch): Promise<Response | null> {
  const asking = new Headers();
  const key = headers.get('authorization');
  if (key) asking.set('authorization', key);
  try {
    const answer = await ask(`${given.service}/conversations/${id}`, { headers: asking, cache: 'no-store', redirect: 'manual' });
    if (answer.status === 404) return problem(404, 'not_found', MISSING);
    if (!answer.ok) return passedOn(answer);
    const { user_id: owner } = (await answer.json()) as { user_id: string | null };
    return owner === user ? null : problem(404, 'not_found', MISSING);
  } catch {
    return problem(502, 'dependency_unavailable', AWAY);
  }
}
