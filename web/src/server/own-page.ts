/** Whether a request comes from the page itself; a request that changes something must name its origin. */

const SAFE = new Set(['GET', 'HEAD']);
const OWN = new Set(['same-origin', 'none']);

export function isOwnPage(request: Request): boolean {
  const { headers } = request;
  const site = headers.get('sec-fetch-site');
  if (site !== null && !OWN.has(site)) return false;
  const origin = headers.get('origin');
  if (origin === null) return SAFE.has(request.method);
  try {
    return new URL(origin).host === (headers.get('host') ?? '').toLowerCase();
  } catch {
    return false;
  }
}
