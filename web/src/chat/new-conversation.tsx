'use client';

import { ChevronRight } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { randomKey } from '@/api/random-key';
import { createConversation, listPresets, type NewConversation as NewConversationBody } from '@/api/resources';
import type { Preset } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { Mark } from '@/shell/mark';
import { giveBack, keepSent } from '@/state/drafts';
import { Chip } from '@/ui/chip';
import { classes } from '@/ui/classes';
import { Failure, isUnreachable, useLoaded } from '@/ui/loaded';
import { Field } from '@/ui/field';
import { presetTitle, presetWhat } from '@/views/preset-words';
import { Composer } from './composer';
import { titleOf } from './title';

export interface Begun {
  id: string;
  /** The first message; `null` if the conversation begins with its files. */
  words: string | null;
  files: File[];
  /** The user went elsewhere before the service answered. */
  isLeft: boolean;
}

/** Shown before the first message: how the conversation is to be kept. Without words it begins with its files. */
export function NewConversation({ onBegin }: { onBegin: (begun: Begun) => void }) {
  const { t, language } = useWords();
  const presets = useLoaded((signal) => listPresets(signal), []);
  /** `null` until the user chooses one: then it is the service's default. */
  const [chosen, setChosen] = useState<string | null>(null);
  const shown = presets.value?.data.find((one) => (chosen === null ? one.is_default : one.name === chosen));
  const preset = shown?.name;
  const [window_, setWindow] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);

  /** A request of which nobody knows whether it arrived: sent again with its key, it makes one conversation. */
  const unsure = useRef<{ wanted: string; body: NewConversationBody; key: string } | null>(null);

  const isLeft = useRef(false);
  useEffect(() => {
    isLeft.current = false;
    return () => void (isLeft.current = true);
  }, []);

  const begin = async (words: string | null, files: File[] = []) => {
    setBusy(true);
    setError(null);
    keepSent(null, words);
    try {
      const size = Number(window_);
      const body = {
        title: words === null ? undefined : titleOf(words),
        locale: language,
        preset,
        policy: size ? { context_window: size } : {},
      };
      // The presets may have come meanwhile: what counts is what the user wants.
      const wanted = JSON.stringify([words, chosen, window_, language]);
      if (unsure.current?.wanted !== wanted) unsure.current = { wanted, body, key: randomKey() };
      const made = await createConversation(unsure.current.body, unsure.current.key);
      onBegin({ id: made.id, words, files, isLeft: isLeft.current });
    } catch (failure) {
      if (!isUnreachable(failure)) unsure.current = null;
      setError(failure);
      if (words !== null) giveBack(null, words);
      setBusy(false);
    }
  };

  return (
    <>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto flex min-h-full w-full max-w-3xl flex-col justify-center px-4 py-8">
          <Mark className="mb-3 size-10 text-accent" />
          <h2 className="text-xl font-semibold">{t('welcome')}</h2>
          <p className="mt-1 max-w-prose text-soft">{t('welcome_what')}</p>
          {Boolean(presets.error) && (
            <div className="mt-4">
              <Failure error={presets.error} onRetry={presets.reload} />
            </div>
          )}
          {/* Whoever only wants to talk needs none of this. */}
          <details className="group mt-6">
            <summary className="flex w-fit list-none items-center gap-1.5 rounded-md text-sm text-soft marker:hidden hover:text-ink">
              <ChevronRight className="size-4 shrink-0 transition-transform group-open:rotate-90" aria-hidden />
              <span>
                {t('how_kept')}
                {shown && <span className="text-ink"> {presetTitle(t, shown)}</span>}
              </span>
            </summary>
            <fieldset className="mt-4">
              <legend className="text-sm font-medium">{t('choose_preset')}</legend>
              <p className="mt-0.5 mb-2 text-xs text-soft">{t('choose_preset_what')}</p>
              <div className="grid gap-2 sm:grid-cols-2">
                {presets.value?.data.map((one) => (
                  <PresetCard key={one.name} preset={one} chosen={one.name === preset} onChoose={() => setChosen(one.name)} />
                ))}
              </div>
            </fieldset>
            <div className="mt-4 max-w-xs">
              <Field
                label={t('policy_context_window')}
                hint={t('window_hint')}
                type="number"
                min={1000}
                step={500}
                value={window_}
                onChange={setWindow}
                placeholder={t('by_the_model')}
              />
            </div>
          </details>
        </div>
      </div>
      <div className="mx-auto w-full max-w-3xl space-y-2 px-3 pb-3">
        {Boolean(error) && <Failure error={error} />}
        <Composer
          conversation={null}
          running={busy}
          stopping={busy}
          compacting={false}
          onAttach={(files) => void (busy || begin(null, files))}
          onSend={(words) => void begin(words)}
          onStop={() => undefined}
        />
      </div>
    </>
  );
}

function PresetCard({ preset, chosen, onChoose }: { preset: Preset; chosen: boolean; onChoose: () => void }) {
  const { t } = useWords();
  return (
    <label
      className={classes(
        'block cursor-pointer rounded-xl border bg-surface p-3 hover:border-accent has-focus-visible:outline-2 has-focus-visible:outline-accent',
        chosen ? 'border-accent ring-1 ring-accent' : 'border-line',
      )}
    >
      <span className="flex items-center gap-2">
        <input type="radio" name="preset" checked={chosen} onChange={onChoose} className="accent-(--accent)" />
        <span className="min-w-0 flex-1 text-sm font-medium">{presetTitle(t, preset)}</span>
        <code className="font-mono text-xs whitespace-nowrap text-soft">{preset.name}</code>
      </span>
      <span className="mt-1 block text-xs text-soft">{presetWhat(t, preset)}</span>
      {preset.is_default && (
        <span className="mt-1.5 block">
          <Chip>{t('preset_default')}</Chip>
        </span>
      )}
    </label>
  );
}
