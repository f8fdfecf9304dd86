/** Who sends a request, shown by a signed cookie or stated by a trusted proxy. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Settings } from './settings';

export const COOKIE = 'throughline_web';
export const LIFE_SECONDS = 12 * 60 * 60;
const NAME = /^[\w.@+-]{1,100}$/;

/** Whether two texts are equal; the time that it takes reveals nothing about them. */
export function equal(a: string, b: string): boolean {
  const key = 'throughline comparison';
  const [one, other] = [a, b].map((text) => createHmac('sha256', key).update(text).digest());
  return timingSafeEqual(one!, other!);
}

/** Signs with our secret and the user's password: a changed password ends the sessions that began with the old one. */
function signature(text: string, user: string, settings: Settings): string {
  const password = settings.login.kind === 'password' ? (settings.login.users.get(user) ?? '') : '';
  return createHmac('sha256', settings.secret).update(`${text}\0${password}`).digest('base64url');
}

/** What a browser stores for a login: the name, the time of its end, and our signature. */
export function cookieOf(user: string, settings: Settings, now: number): string {
  const told = `${Buffer.from(user).toString('base64url')}.${Math.floor(now / 1000) + LIFE_SECONDS}`;
  return `${told}.${signature(told, user, settings)}`;
}

function userOf(cookie: string, settings: Settings, now: number): string | null {
  const [name = '', until = '', given = ''] = cookie.split('.');
  const user = Buffer.from(name, 'base64url').toString();
  if (!equal(given, signature(`${name}.${until}`, user, settings))) return null;
  if (!(Number(until) * 1000 > now)) return null;
  return settings.login.kind === 'password' && settings.login.users.has(user) ? user : null;
}

function cookieIn(headers: Headers): string | undefined {
  const parts = (headers.get('cookie') ?? '').split(';').map((part) => part.trim());
  return parts.find((part) => part.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1);
}

export type Identity = { known: true; user: string | null } | { known: false };

/** The user of a request; `null` if nobody logs in, since then nobody else can reach this server. */
export function identityOf(headers: Headers, settings: Settings, now = Date.now()): Identity {
  const { login } = settings;
  if (login.kind === 'none') return { known: true, user: null };
  if (login.kind === 'password') {
    const cookie = cookieIn(headers);
    const user = cookie ? userOf(cookie, settings, now) : null;
    return user === null ? { known: false } : { known: true, user };
  }
  const user = headers.get(login.header) ?? '';
  const isTrusted = equal(headers.get(login.secretHeader) ?? '', login.secret);
  return isTrusted && NAME.test(user) ? { known: true, user } : { known: false };
}

/** Whether name and password belong together; an unknown name takes the same work. */
export function isRight(name: string, password: string, settings: Settings): boolean {
  if (settings.login.kind !== 'password') return false;
  const wanted = settings.login.users.get(name);
  return equal(password, wanted ?? '\0nobody') && wanted !== undefined;
}
