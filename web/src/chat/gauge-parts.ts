/** Pure: how a gauge is drawn and put into words. */
import type { Gauge } from '@/api/types';

export const PARTS = ['system', 'files', 'state', 'anchors', 'digests', 'held', 'tail', 'recalled', 'pending'] as const;
export type Part = (typeof PARTS)[number];

export interface Slice {
  part: Part;
  tokens: number;
  /** Percent of the bar, 0 to 100. */
  width: number;
}

/** The bar's end: the budget, or the context's size if that is larger. */
export const fullOf = (gauge: Gauge): number => Math.max(gauge.budget, gauge.tokens, 1);

export function slicesOf(gauge: Gauge): Slice[] {
  const full = fullOf(gauge);
  return PARTS.map((part) => {
    const tokens = gauge.breakdown[part];
    return { part, tokens, width: (tokens / full) * 100 };
  }).filter((slice) => slice.tokens > 0);
}

/** The places of the thresholds on the bar, in percent. */
export function ticksOf(gauge: Gauge): { name: 'background' | 'sync'; at: number; tokens: number }[] {
  const full = fullOf(gauge);
  return (['background', 'sync'] as const).flatMap((name) => {
    const tokens = gauge[`${name}_at`];
    return tokens === null || tokens === undefined ? [] : [{ name, tokens, at: Math.min(100, (tokens / full) * 100) }];
  });
}

export const isPressing = (gauge: Gauge): boolean => gauge.status !== 'ok';
