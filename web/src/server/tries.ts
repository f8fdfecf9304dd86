/** How often somebody may try to log in within a minute, by name and by address. */

const MOST = 8;
const MOST_FROM_ADDRESS = 60;
const WINDOW = 60_000;
const MOST_KEPT = 10_000;
const LONGEST = 200;

export class Tries {
  private readonly kept = new Map<string, number[]>();

  constructor(private readonly now: () => number = Date.now) {}

  /** Whether one more try is allowed; the call counts as a try. */
  take(name: string, address: string): boolean {
    // A refused address adds no name: else one address could fill what is kept, and nobody else could log in.
    return this.count(`from ${address.slice(-LONGEST)}`) <= MOST_FROM_ADDRESS && this.count(`name ${name.slice(0, LONGEST)}`) <= MOST;
  }

  private count(key: string): number {
    const now = this.now();
    if (!this.kept.has(key) && !this.hasRoom(now)) return Infinity;
    const recent = [...(this.kept.get(key) ?? []).filter((at) => at > now - WINDOW), now].slice(-MOST_FROM_ADDRESS - 1);
    this.kept.delete(key);
    this.kept.set(key, recent);
    return recent.length;
  }

  /** Whether one more key can be kept; none of the last minute is forgotten, so that no flood of keys frees a name. */
  private hasRoom(now: number): boolean {
    for (const [key, times] of this.kept) {
      if (this.kept.size < MOST_KEPT || times.at(-1)! > now - WINDOW) break;
      this.kept.delete(key);
    }
    return this.kept.size < MOST_KEPT;
  }
}

/**
 * Who sends a request: the address that the nearest proxy added last, or the connection's own, which Next puts there if
 * no proxy did. Without a proxy that names addresses a client may name any: then its names alone limit its tries.
 */
export const addressOf = (headers: Headers): string => (headers.get('x-forwarded-for') ?? '').split(',').at(-1)!.trim();
