'use client';

import { useState } from 'react';
import { type ContextFormat, getContext } from '@/api/resources';
import type { AssembledContext } from '@/api/types';
import { Bar } from '@/chat/gauge';
import { LongText, MOST_SHOWN } from '@/chat/long-text';
import { MessageParts } from '@/chat/message-parts';
import { warningWords } from '@/chat/warnings';
import { useWords } from '@/i18n/provider';
import { Originals } from '@/state-view/originals';
import { useConversation } from '@/state/conversation';
import { Button } from '@/ui/button';
import { CopyButton } from '@/ui/copy-button';
import { Choice, Field } from '@/ui/field';
import { Failure, Shown, useLoaded } from '@/ui/loaded';
import { Notice } from '@/ui/notice';
import { useSettled } from '@/ui/settled';
import { Section } from './section';

const FORMATS: ContextFormat[] = ['plain', 'openai', 'gemini', 'anthropic'];
const FORMAT_NAMES: Record<Exclude<ContextFormat, 'plain'>, string> = {
  openai: 'OpenAI',
  gemini: 'Gemini',
  anthropic: 'Anthropic',
};

/** Exactly what a model would be sent now, by its parts and in each provider's format. */
export default function ContextView() {
  const { t, percent, number, word } = useWords();
  const { id, revisions } = useConversation();
  const [format, setFormat] = useState<ContextFormat>('plain');
  const [query, setQuery] = useState('');
  const asked = useSettled(query.trim());
  const found = useLoaded(
    (signal) => getContext(id, format, asked, signal).then((context) => ({ context, format })),
    [id, format, asked, revisions.messages, revisions.states],
  );
  return (
    <div className="space-y-5">
      <p className="text-soft">{t('context_what')}</p>
      <div className="grid gap-3 sm:grid-cols-[1fr_14rem]">
        <Field label={t('context_query')} hint={t('context_query_what')} value={query} onChange={setQuery} maxLength={500} />
        <Choice
          label={t('format')}
          value={format}
          options={FORMATS.map((value) => ({ value, label: value === 'plain' ? t('format_plain') : FORMAT_NAMES[value] }))}
          onChange={setFormat}
        />
      </div>
      <Shown of={found}>
        {({ context, format: shown }) => (
          <>
            <Section
              title={t('gauge_said', {
                percent: percent(context.gauge.utilization),
                tokens: number(context.gauge.tokens),
                budget: number(context.gauge.budget),
              })}
            >
              <Bar gauge={context.gauge} tall />
              <Sections context={context} />
            </Section>
            {context.warnings.map((warning) => (
              <Notice key={warning} tone="warn">
                {warningWords(warning, word)}
              </Notice>
            ))}
            <Section title={t('sent')}>
              {shown === 'plain' ? <Plain context={context} /> : <Raw context={context} />}
            </Section>
          </>
        )}
      </Shown>
    </div>
  );
}

function Sections({ context }: { context: AssembledContext }) {
  const { t, word, number } = useWords();
  const kinds = new Map<string, { tokens: number; seqs: number[] }>();
  for (const section of context.sections) {
    const held = kinds.get(section.kind) ?? { tokens: 0, seqs: [] };
    kinds.set(section.kind, { tokens: held.tokens + section.tokens, seqs: [...held.seqs, ...section.seqs] });
  }
  return (
    <table className="mt-2 w-full text-sm">
      <thead className="text-left text-xs text-soft">
        <tr>
          <th scope="col" className="py-1 font-medium">
            {t('part')}
          </th>
          <th scope="col" className="hidden py-1 font-medium sm:table-cell">
            {t('messages_heading')}
          </th>
          <th scope="col" className="py-1 text-right font-medium whitespace-nowrap">
            {t('tokens_heading')}
          </th>
        </tr>
      </thead>
      <tbody className="divide-y divide-line">
        {[...kinds].map(([kind, { tokens, seqs }]) => (
          <tr key={kind} className="align-top">
            <th scope="row" className="py-1.5 pr-2 text-left font-normal">
              <span className="mr-2 inline-block size-2.5 rounded-sm" style={{ background: `var(--part-${kind})` }} aria-hidden />
              {word('part', kind)}
              <span className="block text-xs text-soft">{kind === 'pending' ? t('pending_what') : word('what', kind)}</span>
            </th>
            <td className="hidden py-1.5 sm:table-cell">
              <Originals seqs={[...new Set(seqs)].toSorted((a, b) => a - b)} />
            </td>
            <td className="py-1.5 text-right tabular-nums">{number(tokens)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface PlainMessage {
  role: string;
  content: string;
  parts: Record<string, unknown>[];
  seq: number | null;
}

function Plain({ context }: { context: AssembledContext }) {
  const { word } = useWords();
  const messages = context.messages as PlainMessage[];
  return (
    <ol className="space-y-3 text-sm">
      {messages.map((message, place) => (
        <li key={place} className="border-l-2 border-line pl-3">
          <p className="flex items-center text-xs text-soft">
            {word('role', message.role)}
            {message.seq !== null && <Originals seqs={[message.seq]} />}
          </p>
          {message.content && <LongText text={message.content} />}
          {message.parts.map((part, number) =>
            part.type === 'text' ? <LongText key={number} text={String(part.text)} /> : <MessageParts key={number} parts={[part]} />,
          )}
        </li>
      ))}
    </ol>
  );
}

/** A value of the JSON as it is shown, without a file's bytes, which would fill the page. A copy includes them. */
const shortened = (_: string, value: unknown): unknown =>
  typeof value === 'string' && value.length > MOST_SHOWN ? `${value.slice(0, 200)}… (${value.length})` : value;

function Raw({ context }: { context: AssembledContext }) {
  const sent = context.system === null ? { messages: context.messages } : { system: context.system, messages: context.messages };
  const text = JSON.stringify(sent, shortened, 2);
  return (
    <div className="relative">
      <CopyButton className="absolute end-2 top-2" text={() => JSON.stringify(sent, null, 2)} />
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls is reached by keyboard */}
      <pre tabIndex={0} className="max-h-[60dvh] overflow-auto rounded-xl border border-line bg-raised p-3 pe-12 font-mono text-xs whitespace-pre-wrap">
        {text}
      </pre>
    </div>
  );
}
