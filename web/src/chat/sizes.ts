/** Pure: sizes in words. */
import type { Translator } from '@/i18n/translator';

const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte'] as const;

/** A number of bytes in the language's notation, such as 1.2 MB. */
export function sizeOf(bytes: number, number: Translator['number']): string {
  const step = bytes < 1_000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1_000 ** step;
  return number(value, {
    style: 'unit',
    unit: UNITS[step],
    unitDisplay: step ? 'short' : 'long',
    maximumFractionDigits: value < 100 ? 1 : 0,
  });
}
