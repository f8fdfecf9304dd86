'use client';

import { type FormEvent, useState } from 'react';
import { patchConversation } from '@/api/resources';
import type { Conversation, Preset } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { areHeld, forgetHeld, useHeld } from '@/state/held';
import { Button } from '@/ui/button';
import { Choice, Field } from '@/ui/field';
import { Failure } from '@/ui/loaded';
import { type Bounds, BOUNDS, overridesOf, percentOf, type Policy, presetPolicyOf, shareOf } from './policy';
import { Section } from './section';

const HELD = ['window', 'background', 'sync', 'recall', 'notifications', 'verify', 'reasoning', 'adaptive', 'bounds', 'further'];

interface Trigger {
  name: string;
  at: { share: number | null };
}

const triggerPercent = (policy: Policy, name: string): string =>
  percentOf((policy.triggers as Trigger[] | undefined)?.find((one) => one.name === name)?.at.share);
const numberOf = (text: string): number | null => (text.trim() === '' ? null : Number(text));

interface Props {
  conversation: Conversation;
  presets: Preset[];
  onSaved: () => void;
}

/** The fields that people change most, and everything else as JSON. */
export function PolicyForm({ conversation, presets, onSaved }: Props) {
  const { t } = useWords();
  const { id, gauge, setConversation, refresh } = useConversation();
  const { policy } = conversation;
  const preset = presetPolicyOf(conversation, presets);
  const names = HELD.map((name) => `${id} ${name}`);
  // A field stays as it was left, over another view and a change in another tab.
  const [contextWindow, setContextWindow] = useHeld(`${id} window`, policy.context_window === null ? '' : String(policy.context_window));
  const [background, setBackground] = useHeld(`${id} background`, triggerPercent(policy, 'background'));
  const [sync, setSync] = useHeld(`${id} sync`, triggerPercent(policy, 'sync'));
  const [recall, setRecall] = useHeld(`${id} recall`, String(policy.recall));
  const [notifications, setNotifications] = useHeld(`${id} notifications`, String(policy.notifications));
  const [verify, setVerify] = useHeld(`${id} verify`, String(policy.verify));
  const [reasoning, setReasoning] = useHeld(`${id} reasoning`, String(policy.reasoning));
  const [adaptive, setAdaptive] = useHeld(`${id} adaptive`, String(policy.adaptive));
  const ownBounds = policy.adaptive_bounds as Bounds;
  const [percents, setPercents] = useHeld(`${id} bounds`, BOUNDS.map((name) => percentOf(ownBounds[name])).join(' '));
  const bounds = percents.split(' ');
  const [further, setFurther] = useHeld(`${id} further`, '');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);

  const save = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const changed: Policy = { context_window: numberOf(contextWindow), recall, notifications, verify, reasoning, adaptive };
      changed.adaptive_bounds = { ...ownBounds, ...Object.fromEntries(BOUNDS.map((name, place) => [name, shareOf(bounds[place]!)])) };
      const overrides: Policy = { ...overridesOf({ ...policy, ...changed }, preset) };
      const shares = { background, sync };
      const shortForms = ['background', 'sync'] as const;
      // Triggers are given as a whole or by their short forms, not both. An emptied field removes its trigger.
      if (shortForms.some((name) => shares[name] !== triggerPercent(policy, name))) {
        delete overrides.triggers;
        for (const name of shortForms) {
          if (shares[name] !== triggerPercent(preset, name)) overrides[`${name}_at`] = shareOf(shares[name]);
        }
      }
      Object.assign(overrides, further.trim() ? (JSON.parse(further) as Policy) : {});
      const changedConversation = await patchConversation(id, { policy: overrides });
      forgetHeld(...names);
      setConversation(changedConversation);
      refresh();
      onSaved();
    } catch (failure) {
      setError(failure instanceof SyntaxError ? new Error(t('no_json')) : failure);
    } finally {
      setBusy(false);
    }
  };

  const options = (...values: [string, string][]) => values.map(([value, label]) => ({ value, label }));
  const hasBackground = triggerPercent(policy, 'background') !== '' || policy.adaptive === 'on';
  const hasShares = triggerPercent(policy, 'background') !== '' || triggerPercent(policy, 'sync') !== '';
  return (
    <Section title={t('change_policy')} what={t('change_policy_what')}>
      <form onSubmit={save} className="space-y-3">
        <div className="grid items-end gap-3 sm:grid-cols-2 lg:grid-cols-3">
          <Field
            label={t('policy_context_window')}
            type="number"
            min={1000}
            step="any"
            value={contextWindow}
            onChange={setContextWindow}
            placeholder={t('by_the_model')}
          />
          {hasShares && (
            <>
              <Field label={t('background_percent')} type="number" min={1} max={100} step="any" value={background} onChange={setBackground} />
              <Field label={t('sync_percent')} type="number" min={1} max={100} step="any" value={sync} onChange={setSync} />
            </>
          )}
          <Choice
            label={t('recall')}
            value={recall}
            options={options(['auto', t('recall_auto')], ['off', t('recall_off')])}
            onChange={setRecall}
          />
          <Choice
            label={t('verify')}
            value={verify}
            options={options(['auto', t('verify_auto')], ['off', t('verify_off')])}
            onChange={setVerify}
          />
          <Choice
            label={t('notifications')}
            value={notifications}
            options={options(
              ['events', t('notifications_events')],
              ['summary', t('notifications_summary')],
              ['before_and_after', t('notifications_before_and_after')],
            )}
            onChange={setNotifications}
          />
          <Choice
            label={t('thoughts_policy')}
            value={reasoning}
            options={options(['off', t('thoughts_off')], ['shown', t('thoughts_shown')], ['asked', t('thoughts_asked')])}
            onChange={setReasoning}
          />
          {hasBackground && (
            <Choice
              label={t('adaptive')}
              value={adaptive}
              options={options(['off', t('adaptive_off')], ['on', t('adaptive_on')])}
              onChange={setAdaptive}
            />
          )}
        </div>
        {adaptive === 'on' && (
          <fieldset className="rounded-xl border border-line p-3">
            <legend className="px-1 text-sm font-medium">{t('adaptive_bounds')}</legend>
            <p className="mb-2 text-xs text-soft">{t('adaptive_bounds_what')}</p>
            <div className="grid gap-3 sm:grid-cols-2">
              {BOUNDS.map((name, place) => (
                <Field
                  key={name}
                  label={t(`adaptive_${name}`)}
                  type="number"
                  min={1}
                  max={100}
                  step="any"
                  value={bounds[place]!}
                  onChange={(text) => setPercents(bounds.with(place, text).join(' '))}
                  placeholder={t('adaptive_by_rule')}
                />
              ))}
            </div>
            {gauge?.adaptive && <p className="mt-3 text-sm text-soft">{gauge.adaptive.explanation}</p>}
          </fieldset>
        )}
        <Field
          label={t('further_fields')}
          hint={t('further_fields_what')}
          value={further}
          onChange={setFurther}
          rows={2}
          mono
          placeholder='{"anchor_share": 0.2}'
        />
        {Boolean(error) && <Failure error={error} />}
        <div className="flex items-center gap-3">
          <Button type="submit" look="primary" disabled={busy}>
            {t('save')}
          </Button>
          {areHeld(names) && <span className="text-sm text-soft">{t('unsaved')}</span>}
        </div>
      </form>
    </Section>
  );
}
