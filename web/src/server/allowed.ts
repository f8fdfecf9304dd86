/** Pure: which requests pass, and what must be checked for them. Everything that is not named here is refused. */

export type Rule =
  | { check: 'none' }
  /** A list of conversations, which has only the user's own. */
  | { check: 'list' }
  /** A new conversation, which becomes the user's. */
  | { check: 'create' }
  /** Something of one conversation, which must be the user's. */
  | { check: 'conversation'; conversation: string };

const ID = '([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})';
const OWN_PATHS: [methods: string, rest: RegExp][] = [
  ['GET PATCH DELETE', /^$/],
  ['GET', /^\/messages$/],
  ['DELETE', new RegExp(`^/messages/${ID}$`)],
  ['PUT DELETE', new RegExp(`^/messages/${ID}/pin$`)],
  ['GET', /^\/search$/],
  ['POST', /^\/ui$/],
  ['GET', /^\/ui\/stream$/],
  ['POST', /^\/chat\/interrupt$/],
  ['POST', /^\/compact$/],
  ['GET', /^\/compactions$/],
  ['GET', /^\/states$/],
  ['POST', /^\/restore$/],
  ['GET', /^\/context$/],
  ['GET', /^\/segments$/],
  ['GET', /^\/segments\/[^/]{1,300}$/],
  ['GET', /^\/anchors$/],
  ['PATCH', new RegExp(`^/anchors/${ID}$`)],
  ['GET POST', /^\/files$/],
  ['DELETE', new RegExp(`^/files/${ID}$`)],
  ['GET', new RegExp(`^/files/${ID}/content$`)],
  ['GET', /^\/stats$/],
  ['GET', /^\/export$/],
  ['GET', /^\/events$/],
];
const CONVERSATION = new RegExp(`^/conversations/${ID}(/.*)?$`);

/** The rule of a request, or `null` if it does not pass. `path` is the part after `/api`, as it was sent. */
export function ruleOf(method: string, path: string): Rule | null {
  // A path with something that stands for a slash or a step up is not one of ours.
  if (/%2f|%5c|%2e|\\|\/\.|\/\//i.test(path)) return null;
  if (path === '/conversations') {
    if (method === 'GET') return { check: 'list' };
    return method === 'POST' ? { check: 'create' } : null;
  }
  if (path === '/presets') return method === 'GET' ? { check: 'none' } : null;
  const found = CONVERSATION.exec(path);
  if (!found) return null;
  const rest = found[2] ?? '';
  const isAllowed = OWN_PATHS.some(([methods, form]) => methods.split(' ').includes(method) && form.test(rest));
  return isAllowed ? { check: 'conversation', conversation: found[1]! } : null;
}
