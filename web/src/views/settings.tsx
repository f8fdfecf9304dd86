'use client';

import { type FormEvent, useState } from 'react';
import { listPresets, patchConversation } from '@/api/resources';
import type { Conversation, Preset } from '@/api/types';
import { LongText } from '@/chat/long-text';
import { useWords } from '@/i18n/provider';
import { LANGUAGE_NAMES, LANGUAGES } from '@/i18n/translator';
import { useConversation } from '@/state/conversation';
import { forgetHeld, heldText, useHeld } from '@/state/held';
import { Button } from '@/ui/button';
import { Choice, Field } from '@/ui/field';
import { Failure, Shown, useLoaded } from '@/ui/loaded';
import { Notice } from '@/ui/notice';
import { POLICY_FIELDS, overridesOf, presetPolicyOf, shownValue } from './policy';
import { PolicyForm } from './policy-form';
import { presetTitle, presetWhat } from './preset-words';
import { Section } from './section';

/** The conversation's title, language and prompt; its preset and policy, explained and changed. */
export default function SettingsView() {
  const { t } = useWords();
  const { id, conversation, error, refresh } = useConversation();
  const presets = useLoaded((signal) => listPresets(signal), []);
  /** The form that was saved last. */
  const [saved, setSaved] = useState<'general' | 'preset' | 'policy' | null>(null);
  if (!conversation) {
    // Its words may have taken long to find, though the conversation was deleted elsewhere.
    const prompt = heldText(`${id} prompt`);
    return (
      <div className="space-y-5">
        <Shown of={{ value: conversation, error, loading: !error, reload: refresh }}>{() => null}</Shown>
        {prompt && (
          <Section title={t('system_prompt')} what={t('unsaved')}>
            <LongText text={prompt} />
          </Section>
        )}
      </div>
    );
  }
  const { title, locale, system_prompt, preset, policy } = conversation;
  return (
    <Shown of={presets}>
      {({ data }) => (
        <div className="space-y-5">
          {/* A form begins anew where what it changes has changed, and not with every message that comes. */}
          <General key={JSON.stringify([title, locale, system_prompt])} conversation={conversation} onSaved={() => setSaved('general')} />
          {saved === 'general' && <Saved />}
          <PresetChoice key={preset} conversation={conversation} presets={data} onSaved={() => setSaved('preset')} />
          {saved === 'preset' && <Saved />}
          <PolicyForm
            key={JSON.stringify([preset, policy])}
            conversation={conversation}
            presets={data}
            onSaved={() => setSaved('policy')}
          />
          {saved === 'policy' && <Saved />}
          <PolicyTable conversation={conversation} presets={data} />
        </div>
      )}
    </Shown>
  );
}

function Saved() {
  const { t } = useWords();
  return (
    <div role="status">
      <Notice>{t('saved')}</Notice>
    </div>
  );
}

function useChange(): { change: (body: Record<string, unknown>) => Promise<boolean>; busy: boolean; error: unknown } {
  const { id, setConversation, refresh } = useConversation();
  const [state, setState] = useState<{ busy: boolean; error: unknown }>({ busy: false, error: null });
  const change = async (body: Record<string, unknown>) => {
    setState({ busy: true, error: null });
    try {
      setConversation(await patchConversation(id, body));
      refresh();
      setState({ busy: false, error: null });
      return true;
    } catch (error) {
      setState({ busy: false, error });
      return false;
    }
  };
  return { change, ...state };
}

function General({ conversation, onSaved }: { conversation: Conversation; onSaved: () => void }) {
  const { t } = useWords();
  const { change, busy, error } = useChange();
  const names = { title: `${conversation.id} title`, locale: `${conversation.id} locale`, prompt: `${conversation.id} prompt` };
  const [title, setTitle] = useHeld(names.title, conversation.title ?? '');
  const [locale, setLocale] = useHeld(names.locale, conversation.locale);
  const [prompt, setPrompt] = useHeld(names.prompt, conversation.system_prompt);
  const isChanged =
    title !== (conversation.title ?? '') || prompt !== conversation.system_prompt || locale !== conversation.locale;
  const locales = LANGUAGES.map((value) => ({ value: value as string, label: LANGUAGE_NAMES[value] }));
  const known = locales.some((one) => one.value === locale) ? locales : [{ value: locale, label: locale }, ...locales];
  const save = (event: FormEvent) => {
    event.preventDefault();
    void change({ title: title.trim() || null, locale, system_prompt: prompt }).then((done) => {
      if (!done) return;
      forgetHeld(...Object.values(names));
      onSaved();
    });
  };
  return (
    <Section title={t('general')}>
      <form onSubmit={save} className="space-y-3">
        <div className="grid items-end gap-3 lg:grid-cols-[1fr_15rem]">
          <Field label={t('title')} value={title} onChange={setTitle} maxLength={500} />
          <Choice label={t('locale')} value={locale} options={known} onChange={setLocale} />
        </div>
        <Field label={t('system_prompt')} value={prompt} onChange={setPrompt} rows={4} />
        {Boolean(error) && <Failure error={error} />}
        <div className="flex items-center gap-3">
          <Button type="submit" look="primary" disabled={busy}>
            {t('save')}
          </Button>
          {isChanged && <span className="text-sm text-soft">{t('unsaved')}</span>}
        </div>
      </form>
    </Section>
  );
}

interface PresetProps {
  conversation: Conversation;
  presets: Preset[];
  onSaved: () => void;
}

function PresetChoice({ conversation, presets, onSaved }: PresetProps) {
  const { t } = useWords();
  const { change, busy, error } = useChange();
  const [chosen, setChosen] = useState(conversation.preset);
  const preset = presets.find((one) => one.name === chosen);
  // The same preset, chosen again, moves a conversation from an earlier version to the present one.
  const isInForce = chosen === conversation.preset && preset?.version === conversation.preset_version;
  return (
    <Section title={t('preset')} what={t('preset_what')}>
      <div className="flex flex-wrap items-end gap-3">
        <div className="min-w-52 flex-1">
          <Choice
            label={t('preset')}
            hideLabel
            value={chosen}
            options={presets.map((one) => ({ value: one.name, label: `${presetTitle(t, one)} (${one.name})` }))}
            onChange={setChosen}
          />
        </div>
        <Button look="primary" disabled={busy || isInForce} onClick={() => void change({ preset: chosen }).then((done) => done && onSaved())}>
          {t('change_preset')}
        </Button>
      </div>
      {preset && <p className="mt-2 text-sm text-soft">{presetWhat(t, preset)}</p>}
      {Boolean(error) && (
        <div className="mt-3">
          <Failure error={error} />
        </div>
      )}
    </Section>
  );
}

/** Every field in force, with its meaning, and whether it differs from the preset. */
function PolicyTable({ conversation, presets }: { conversation: Conversation; presets: Preset[] }) {
  const { t } = useWords();
  const own = overridesOf(conversation.policy, presetPolicyOf(conversation, presets));
  return (
    <Section title={t('policy')} what={t('policy_what')}>
      <dl className="divide-y divide-line text-sm">
        {POLICY_FIELDS.filter((name) => name in conversation.policy).map((name) => (
          <div key={name} className="grid gap-x-4 gap-y-0.5 py-2 sm:grid-cols-[13rem_1fr]">
            <dt className="font-mono text-[0.8125rem]">
              {name}
              {name in own && <span className="ml-2 font-sans text-xs font-medium text-accent">{t('own')}</span>}
            </dt>
            <dd className="min-w-0">
              <span className="font-mono text-[0.8125rem] whitespace-pre-wrap">{shownValue(conversation.policy[name])}</span>
              <span className="block text-xs text-soft">{t(`policy_${name}`)}</span>
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
