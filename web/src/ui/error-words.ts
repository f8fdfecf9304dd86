import { useCallback } from 'react';
import { type Told, toldOf } from '@/api/client';
import { useWords } from '@/i18n/provider';
import type { Key, Translator } from '@/i18n/translator';

/** Codes for which the page has texts of its own, since the service's are for programmers. */
const OWN: Readonly<Record<string, Key>> = {
  unreachable: 'unreachable',
  copy_failed: 'copy_failed',
  turn_in_progress: 'turn_in_progress',
  not_regenerable: 'not_regenerable',
  blocked: 'error_blocked',
  empty_reply: 'error_empty_reply',
  request_timeout: 'error_timeout',
  context_over_window: 'error_over_window',
  message_too_large: 'error_message_too_large',
  compaction_in_progress: 'error_compacting',
  conversation_set_aside: 'error_set_aside',
  lease_expired: 'error_lost',
};

/** Codes whose title says all that a reader can use; the detail is in English. */
const TOLD_BY_TITLE = new Set(['not_found', 'internal_error', 'unauthenticated']);

/** The text for an error: the page's own, or the service's title in the reader's language with its detail. */
export function useErrorWords(): (error: unknown) => string {
  const words = useWords();
  return useCallback((error) => errorWords(toldOf(error), words), [words]);
}

export function errorWords({ code, text, problem }: Told, { t, word, language, number }: Translator): string {
  if (text === 'Failed to fetch' || text === 'network error') return t('unreachable');
  const extra = (problem ?? {}) as Record<string, unknown>;
  const reason = typeof extra.reason === 'string' ? extra.reason : null;
  if (code === 'model_unavailable' || code === 'model_failed') {
    const told = extra.retryable === false ? 'error_model_lasts' : 'error_model';
    return t(told, { reason: reason ? word('reason', reason) : t('error_no_reason') });
  }
  if (code === 'rate_limited') {
    const wait = Number(extra.reset_seconds);
    return wait > 0 ? t('error_rate_until', { wait: number(...inUnits(wait)) }) : t('error_rate');
  }
  const { size, protected_tokens: held, limit, seq } = extra;
  if (code === 'pin_budget_exceeded' && typeof limit === 'number') {
    return t(seq ? 'error_hold' : 'error_pin', { seq: String(seq), size: Number(size), held: Number(held), limit });
  }
  const own = OWN[code];
  if (own) return t(own);
  const title = problem?.title;
  if (language === 'en' || !title) return text;
  return TOLD_BY_TITLE.has(code) ? `${title}.` : `${title}: ${text}`;
}

/** Seconds as a number with its unit; many seconds are told in minutes. */
function inUnits(seconds: number): [number, Intl.NumberFormatOptions] {
  const inMinutes = seconds > 120;
  const unit = inMinutes ? 'minute' : 'second';
  return [Math.ceil(inMinutes ? seconds / 60 : seconds), { style: 'unit', unit, unitDisplay: 'short' }];
}
