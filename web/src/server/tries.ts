/** How often somebody may try to log in within a minute, by name and by address. */

const MOST = 8;
const MOST_IN_ALL = 60;
const WINDOW = 60_000;
const MOST_KEPT = 10_000;

export class Tries {
  private readonly kept = new Map<string, number[]>();

  constructor(private readonly now: () => number = Date.now) {}

  /** Whether one more try is allowed; the call counts as a try. */
  take(name: string): boolean {
    const all = this.count('\0all');
    const own = this.count(name.slice(0, 200));
    return own <= MOST && all <= MOST_IN_ALL;
  }

  private count(name: string): number {
    const now = this.now();
    const recent = [...(this.kept.get(name) ?? []).filter((at) => at > now - WINDOW), now].slice(-MOST_IN_ALL - 1);
    this.kept.delete(name);
    this.kept.set(name, recent);
    while (this.kept.size > MOST_KEPT) this.kept.delete(this.kept.keys().next().value as string);
    return recent.length;
  }
}
