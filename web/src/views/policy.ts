/** Pure: the fields of a policy, and which of them a conversation has changed. */
import type { Conversation, Preset } from '@/api/types';

export const POLICY_FIELDS = [
  'context_window',
  'window_share',
  'output_reserve',
  'triggers',
  'target',
  'adaptive',
  'adaptive_bounds',
  'manual_keep',
  'minimum_progress',
  'state_schema',
  'state_tokens',
  'state_share',
  'state_cap',
  'served_as',
  'anchor_share',
  'pin_share',
  'over_allotment',
  'protect',
  'held_roles',
  'levels',
  'segment_by',
  'digest_share',
  'recall',
  'recall_share',
  'oversized',
  'summarizer',
  'fallback_model',
  'verify',
  'verifier_model',
  'continuity_floor',
  'instructions',
  'inject_system_context',
  'notifications',
  'on_failure',
  'on_disconnect',
  'reasoning',
  'sync_deadline',
  'calls_per_chunk',
  'calls_per_hour',
  'cache',
  'cache_ttl',
  'estimator',
] as const;

export type PolicyField = (typeof POLICY_FIELDS)[number];
export type Policy = Record<string, unknown>;

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The policy of the conversation's version of its preset; of the present one, as in the service, if that is unknown. */
export function presetPolicyOf({ preset: name, preset_version }: Conversation, presets: Preset[]): Policy {
  const preset = presets.find((one) => one.name === name);
  return (preset?.earlier?.find((one) => one.version === preset_version) ?? preset)?.policy ?? {};
}

/** The differences from the preset. A `PATCH` sends all of them, since it replaces all overrides. */
export function overridesOf(policy: Policy, preset: Policy): Policy {
  return Object.fromEntries(Object.entries(policy).filter(([name, value]) => !same(value, preset[name])));
}

export const BOUNDS = ['background_min', 'background_max', 'target_min', 'target_max'] as const;
export type Bounds = Record<(typeof BOUNDS)[number], number | null>;

/** A share in percent, with four decimals at most; empty if there is none. */
export const percentOf = (share: number | null | undefined): string =>
  share === null || share === undefined ? '' : String(Number((share * 100).toFixed(4)));

/** The share for a number of percent; `null` for an empty field. */
export const shareOf = (percent: string): number | null =>
  percent.trim() === '' ? null : Number((Number(percent) / 100).toFixed(6));

interface Trigger {
  name: string;
  at: Record<string, number | null>;
  run: string;
}

const isTrigger = (value: unknown): value is Trigger =>
  typeof value === 'object' && value !== null && 'at' in value && 'run' in value;

/** A short form of a value. */
export function shownValue(value: unknown): string {
  if (value === null || value === undefined) return '–';
  if (Array.isArray(value)) return value.length ? value.map(shownValue).join(value.some(isTrigger) ? '\n' : ', ') : '–';
  if (isTrigger(value)) return `${value.name} @ ${shownValue(given(value.at))} · ${value.run}`;
  if (typeof value === 'object') {
    return Object.entries(given(value as Record<string, unknown>))
      .map(([name, one]) => `${name}: ${shownValue(one)}`)
      .join(', ');
  }
  return value === '' ? '–' : String(value);
}

function given(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null));
}
