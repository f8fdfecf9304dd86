/** `tab` is forgotten with its tab. */
type Where = 'browser' | 'tab';

const storage = (where: Where): Storage => (where === 'tab' ? sessionStorage : localStorage);

/** What the browser stores for this page. A browser that may not store anything throws; then nothing is kept. */
export function kept(name: string, where: Where = 'browser'): string | null {
  try {
    return storage(where).getItem(name);
  } catch {
    return null;
  }
}

export function keep(name: string, value: string | null, where: Where = 'browser'): void {
  try {
    if (value === null) storage(where).removeItem(name);
    else storage(where).setItem(name, value);
  } catch {
    // The user is asked again.
  }
}
