'use client';

import { type FormEvent, useState } from 'react';
import { patchConversation } from '@/api/resources';
import type { Conversation, Preset } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { Button } from '@/ui/button';
import { Choice, Field } from '@/ui/field';
import { Failure } from '@/ui/loaded';
import { type Policy, overridesOf } from './policy';
import { Section } from './section';

interface Trigger {
  name: string;
  at: { share: number | null };
}

const shareOf = (policy: Policy, name: string): string => {
  const trigger = (policy.triggers as Trigger[]).find((one) => one.name === name);
  const share = trigger?.at.share;
  return share === null || share === undefined ? '' : String(Math.round(share * 100));
};
const numberOf = (text: string): number | null => (text.trim() === '' ? null : Number(text));

/** The fields that people change most; everything else as JSON. */
export function PolicyForm({ conversation, presets }: { conversation: Conversation; presets: Preset[] }) {
  const { t } = useWords();
  const { id, setConversation, refresh } = useConversation();
  const { policy } = conversation;
  const preset: Policy = presets.find((one) => one.name === conversation.preset)?.policy ?? {};
  const [contextWindow, setContextWindow] = useState(policy.context_window === null ? '' : String(policy.context_window));
  const [background, setBackground] = useState(shareOf(policy, 'background'));
  const [sync, setSync] = useState(shareOf(policy, 'sync'));
  const [recall, setRecall] = useState(String(policy.recall));
  const [notifications, setNotifications] = useState(String(policy.notifications));
  const [verify, setVerify] = useState(String(policy.verify));
  const [further, setFurther] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);

  const save = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const changed: Policy = { context_window: numberOf(contextWindow), recall, notifications, verify };
      const overrides: Policy = { ...overridesOf({ ...policy, ...changed }, preset) };
      for (const [name, text] of [
        ['background', background],
        ['sync', sync],
      ] as const) {
        const share = numberOf(text);
        // Triggers as a whole or by their short forms, not both.
        if (share !== null && text !== shareOf(policy, name)) overrides[`${name}_at`] = share / 100;
      }
      if ('background_at' in overrides || 'sync_at' in overrides) {
        delete overrides.triggers;
        for (const [name, text] of [
          ['background', background],
          ['sync', sync],
        ] as const) {
          if (text && text !== shareOf(preset, name)) overrides[`${name}_at`] = Number(text) / 100;
        }
      }
      Object.assign(overrides, further.trim() ? (JSON.parse(further) as Policy) : {});
      setConversation(await patchConversation(id, { policy: overrides }));
      refresh();
    } catch (failure) {
      setError(failure instanceof SyntaxError ? new Error(t('no_json')) : failure);
    } finally {
      setBusy(false);
    }
  };

  const options = (...values: [string, string][]) => values.map(([value, label]) => ({ value, label }));
  const hasShares = shareOf(policy, 'background') !== '' || shareOf(policy, 'sync') !== '';
  return (
    <Section title={t('change_policy')} what={t('change_policy_what')}>
      <form onSubmit={save} className="space-y-3">
        <div className="grid gap-3 sm:grid-cols-3">
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
              <Field label={t('background_percent')} type="number" min={1} max={100} value={background} onChange={setBackground} />
              <Field label={t('sync_percent')} type="number" min={1} max={100} value={sync} onChange={setSync} />
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
        </div>
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
        <Button type="submit" look="primary" disabled={busy}>
          {t('save')}
        </Button>
      </form>
    </Section>
  );
}
