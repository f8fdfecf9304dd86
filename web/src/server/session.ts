/** Logging in and out of the page's own server. */
import { bytesOf } from './body';
import { COOKIE, cookieOf, isRight, LIFE_SECONDS } from './identity';
import { isOwnPage } from './own-page';
import { problem } from './problem';
import { type Settings, settings } from './settings';
import { addressOf, Tries } from './tries';

const LARGEST = 4_000;
const tries = new Tries();

export async function logIn(request: Request, given: Settings = settings(), limit: Tries = tries): Promise<Response> {
  if (!isOwnPage(request)) return problem(403, 'forbidden', 'Log in on the page itself.');
  const { name, password } = await credentials(request);
  if (!limit.take(name, addressOf(request.headers))) return problem(429, 'rate_limited', 'Too many tries.', { 'retry-after': '60' });
  if (!isRight(name, password, given)) return problem(401, 'unauthenticated', 'Name or password are wrong.');
  return answer(`${COOKIE}=${cookieOf(name, given, Date.now())}; Max-Age=${LIFE_SECONDS}`, given);
}

export function logOut(request: Request, given: Settings = settings()): Response {
  if (!isOwnPage(request)) return problem(403, 'forbidden', 'Log out on the page itself.');
  return answer(`${COOKIE}=; Max-Age=0`, given);
}

function answer(cookie: string, given: Settings): Response {
  const secure = given.secure ? '; Secure' : '';
  return new Response(null, {
    status: 204,
    headers: { 'set-cookie': `${cookie}; Path=/; HttpOnly; SameSite=Strict${secure}`, 'cache-control': 'no-store' },
  });
}

async function credentials(request: Request): Promise<{ name: string; password: string }> {
  const bytes = await bytesOf(request, LARGEST);
  try {
    const { name, password } = JSON.parse(new TextDecoder().decode(bytes ?? undefined)) as Record<string, unknown>;
    return { name: typeof name === 'string' ? name : '', password: typeof password === 'string' ? password : '' };
  } catch {
    return { name: '', password: '' };
  }
}
