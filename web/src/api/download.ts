import { address, type Query, send } from './client';

/**
 * Saves what an address answers with. A browser does not tell a page why a download failed, so the page asks first, and
 * reads no more than whether it gets an answer. Throws `ApiError`.
 */
export async function download(path: string, query: Query = {}, name = ''): Promise<void> {
  const asking = new AbortController();
  try {
    await send('GET', path, { query, signal: asking.signal });
  } finally {
    asking.abort();
  }
  const link = document.createElement('a');
  link.href = address(path, query);
  link.download = name;
  link.click();
}
