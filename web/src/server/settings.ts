import { readFileSync } from 'node:fs';

/**
 * Settings of the page's own server, read from its environment at the start. The server has the service's key, so it
 * must know who sends a request: if it can be reached beyond loopback, it refuses to start without a login.
 */

export type Login =
  | { kind: 'none'; user: null }
  | { kind: 'password'; users: ReadonlyMap<string, string> }
  | { kind: 'header'; header: string; secretHeader: string; secret: string };

export interface Settings {
  service: string;
  key: string | null;
  login: Login;
  /** The secret that signs the cookies. */
  secret: string;
  /** Hosts other than loopback under which the server is reached if nobody logs in. */
  hosts: ReadonlySet<string>;
  /** Whether cookies are sent over https alone. */
  secure: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

export class SettingsError extends Error {}

const SHORTEST_PASSWORD = 12;
const SHORTEST_SECRET = 32;
const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1', '[::1]']);

/** Whether a `Host` is this machine's own, or allowed. Another name may be a foreign page's whose DNS leads here. */
export function isKnownHost(host: string, given: Settings): boolean {
  const name = host.toLowerCase().replace(/:\d{1,5}$/, '');
  return LOOPBACK.has(name) || name.endsWith('.localhost') || given.hosts.has(name);
}

const NAME = /^[\w.@+-]{1,100}$/;
const HEADER = /^[A-Za-z][A-Za-z0-9-]{0,60}$/;

/** The settings. Throws `SettingsError` with one sentence on what to correct. */
export function settingsOf(environment: Environment): Settings {
  const service = (environment.THROUGHLINE_URL ?? 'http://127.0.0.1:8000').replace(/\/+$/, '');
  if (!/^https?:\/\/[^/?#]+$/.test(service)) {
    throw new SettingsError(`THROUGHLINE_URL must be an address such as http://127.0.0.1:8000, not ${service}.`);
  }
  const login = loginOf(environment);
  if (login.kind === 'none' && !isAlone(environment)) {
    throw new SettingsError(
      'Without a login this server listens on loopback only: set WEB_USERS (name:password, …), or WEB_IDENTITY_HEADER' +
        ' with WEB_PROXY_SECRET behind a proxy that logs people in, or HOSTNAME=127.0.0.1.',
    );
  }
  const secret = environment.WEB_SECRET ?? '';
  if (login.kind === 'password' && secret.length < SHORTEST_SECRET) {
    throw new SettingsError(`WEB_SECRET must have at least ${SHORTEST_SECRET} characters: it signs the cookies.`);
  }
  return {
    service,
    key: keyOf(environment),
    login,
    secret,
    hosts: new Set((environment.WEB_ALLOWED_HOSTS ?? '').split(',').map((one) => one.trim().toLowerCase()).filter(Boolean)),
    secure: environment.WEB_SECURE_COOKIES !== 'false',
  };
}

function keyOf(environment: Environment): string | null {
  const { THROUGHLINE_API_KEY: key, THROUGHLINE_API_KEY_FILE: file } = environment;
  if (key || !file) return key || null;
  try {
    return readFileSync(file, 'utf8').trim() || null;
  } catch {
    throw new SettingsError(`THROUGHLINE_API_KEY_FILE: ${file} cannot be read.`);
  }
}

/** Whether the server listens on loopback, or, as its maker says, in a container with its port on loopback alone. */
function isAlone(environment: Environment): boolean {
  return LOOPBACK.has(environment.HOSTNAME ?? '') || environment.WEB_PUBLISHED_ON_LOOPBACK === 'true';
}

function loginOf(environment: Environment): Login {
  const { WEB_USERS: users, WEB_IDENTITY_HEADER: header } = environment;
  if (users && header) throw new SettingsError('Set WEB_USERS or WEB_IDENTITY_HEADER, not both.');
  if (users) return { kind: 'password', users: usersOf(users) };
  if (!header) return { kind: 'none', user: null };
  const secret = environment.WEB_PROXY_SECRET ?? '';
  if (!HEADER.test(header)) throw new SettingsError('WEB_IDENTITY_HEADER must be the name of a header.');
  if (secret.length < SHORTEST_SECRET) {
    throw new SettingsError(
      `WEB_PROXY_SECRET must have at least ${SHORTEST_SECRET} characters: the proxy sends it as X-Proxy-Secret, so` +
        ' that nobody else can name a user.',
    );
  }
  return { kind: 'header', header, secretHeader: 'x-proxy-secret', secret };
}

function usersOf(text: string): ReadonlyMap<string, string> {
  const users = new Map<string, string>();
  for (const entry of text.split(',').map((one) => one.trim()).filter(Boolean)) {
    const [name = '', ...rest] = entry.split(':');
    const password = rest.join(':');
    if (!NAME.test(name)) throw new SettingsError('WEB_USERS: a name has letters, digits and . _ @ + - alone.');
    if (users.has(name)) throw new SettingsError(`WEB_USERS names ${name} twice.`);
    if (password.length < SHORTEST_PASSWORD) {
      throw new SettingsError(`WEB_USERS: the password of ${name} needs at least ${SHORTEST_PASSWORD} characters.`);
    }
    users.set(name, password);
  }
  if (!users.size) throw new SettingsError('WEB_USERS names nobody: write name:password, name:password.');
  return users;
}

let read: Settings | null = null;

export function settings(): Settings {
  read ??= settingsOf(process.env);
  return read;
}
