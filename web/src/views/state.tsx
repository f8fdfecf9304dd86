'use client';

import { useState } from 'react';
import { listSegments, listStates } from '@/api/resources';
import type { StateVersion } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { useOpener } from '@/state/opener';
import { Difference } from '@/state-view/difference';
import { Originals } from '@/state-view/originals';
import { Repairs } from '@/state-view/repairs';
import { Restore } from '@/state-view/restore';
import { StateFields } from '@/state-view/state-fields';
import { Chip } from '@/ui/chip';
import { Choice } from '@/ui/field';
import { type Further, More, Shown, useFurther, useLoaded } from '@/ui/loaded';
import { Section } from './section';

/** The state in each of its versions, what changed between two, and the segments that it stands for. */
export default function StateView() {
  const { t } = useWords();
  const { id, revisions } = useConversation();
  const states = useLoaded((signal) => listStates(id, null, 100, signal), [id, revisions.states]);
  const versions = useFurther(states.value, (after) => listStates(id, after, 100));
  return (
    <Shown of={states}>
      {() => (versions.items.length === 0 ? <p className="py-8 text-center text-soft">{t('no_state')}</p> : <Versions of={versions} />)}
    </Shown>
  );
}

function Versions({ of }: { of: Further<StateVersion> }) {
  const { items: versions } = of;
  const { t, date, moment } = useWords();
  const newest = versions.reduce((best, one) => (one.version > best.version ? one : best));
  /** `null` for the newest one: whoever reads an earlier version stays there when another is made. */
  const [chosen, setChosen] = useState<number | null>(null);
  const [other, setOther] = useState<number | null>(null);
  const version = versions.find((one) => one.version === chosen) ?? newest;
  const options = versions
    .toSorted((a, b) => b.version - a.version)
    .map((one) => ({ value: String(one.version), label: `${t('version', { version: one.version })} · ${moment(one.created_at)}` }));

  return (
    <div className="space-y-8">
      <div className="space-y-4">
        <div className="flex flex-wrap items-end gap-3">
          <div className="min-w-44">
            <Choice label={t('version_heading')} value={String(version.version)} options={options} onChange={(value) => setChosen(Number(value) === newest.version ? null : Number(value))} />
          </div>
          {versions.length > 1 && (
            <div className="min-w-44">
              <Choice
                label={t('compare')}
                value={other === null ? '' : String(other)}
                options={[{ value: '', label: t('compare_none') }, ...options.filter((one) => one.value !== String(version.version))]}
                onChange={(value) => setOther(value ? Number(value) : null)}
              />
            </div>
          )}
          <Restore version={version.version} onRestored={() => setChosen(null)} />
          <More of={of} />
        </div>
        <div className="flex flex-wrap gap-1.5">
          <Chip>{t(`made_by_${version.made_by}`)}</Chip>
          <Chip>{date(version.created_at)}</Chip>
          <Chip>{t('covers', { seq: String(version.boundary_seq) })}</Chip>
          <Chip title={t('policy_state_schema')}>{version.state_schema}</Chip>
          <Chip tone={version.verified === 'pending' ? 'plain' : 'accent'} title={version.verification?.model}>
            {t(`verified_${version.verified}`)}
          </Chip>
        </div>
      </div>
      {other !== null && other !== version.version && (
        <Section title={t('difference_title', { a: Math.min(other, version.version), b: Math.max(other, version.version) })}>
          <Difference a={Math.min(other, version.version)} b={Math.max(other, version.version)} />
        </Section>
      )}
      <Section title={t('state_version', { version: version.version })}>
        <StateFields version={version} />
      </Section>
      <Repairs repairs={version.repairs} />
      <Doubts version={version} />
      <Section title={t('segments')} what={t('segments_what')}>
        <Segments />
      </Section>
    </div>
  );
}

/** Entries without proof, which are served after the others and marked as such. */
function Doubts({ version }: { version: StateVersion }) {
  const { t, word } = useWords();
  const doubted = version.provenance.filter((entry) => entry.in_doubt);
  if (!doubted.length) return null;
  return (
    <Section title={t('doubts')} what={t('doubts_what')}>
      <ul className="space-y-1.5 text-sm">
        {doubted.map((entry) => (
          <li key={entry.entry_id} className="border-l-2 border-warn pl-3">
            <span className="text-xs text-soft">{word('state', entry.field)}: </span>
            {entry.text}
            <Originals seqs={entry.from_seqs} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Segments() {
  const { t, word } = useWords();
  const { id, revisions } = useConversation();
  const opener = useOpener();
  const first = useLoaded((signal) => listSegments(id, null, signal), [id, revisions.states]);
  const segments = useFurther(first.value, (after) => listSegments(id, after));
  return (
    <Shown of={first}>
      {() => (
        <>
          <ul className="divide-y divide-line">
            {segments.items.map((segment) => (
              <li key={segment.segment_id}>
                <button
                  type="button"
                  onClick={() => opener.segment(segment.segment_id)}
                  className="flex w-full flex-wrap items-baseline gap-x-3 py-2 text-left text-sm hover:text-accent"
                >
                  <span className="min-w-0 flex-1 basis-48 font-medium">{segment.topic}</span>
                  <span className="text-xs text-soft tabular-nums">
                    {segment.from_seq !== null && `#${segment.from_seq}–${segment.to_seq} · `}
                    {t('messages', { count: segment.message_count })} · {t('tokens', { count: segment.token_count })} ·{' '}
                    {word('level', LEVELS[segment.level] ?? segment.level)}
                  </span>
                </button>
              </li>
            ))}
          </ul>
          <More of={segments} />
        </>
      )}
    </Shown>
  );
}

const LEVELS: Record<string, string> = { detailed: 'L1', brief: 'L2', tags: 'L3' };
