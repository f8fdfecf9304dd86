'use client';

import { Minus, PencilLine, Plus } from 'lucide-react';
import { compareStates } from '@/api/resources';
import type { Provenance } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { Shown, useLoaded } from '@/ui/loaded';
import { Originals } from './originals';

/** What differs between two versions of the state. */
export function Difference({ a, b }: { a: number; b: number }) {
  const { t, word } = useWords();
  const { id, revisions } = useConversation();
  const found = useLoaded((signal) => compareStates(id, a, b, signal), [id, a, b, revisions.states]);
  return (
    <Shown of={found}>
      {({ added, removed, changed }) =>
        added.length + removed.length + changed.length === 0 ? (
          <p className="text-sm text-soft">{t('no_difference')}</p>
        ) : (
          <div className="space-y-4 text-sm" data-testid="difference">
            <Entries heading={t('added')} entries={added} sign="plus" />
            {changed.length > 0 && (
              <section>
                <h3 className="mb-1.5 flex items-center gap-1.5 font-medium">
                  <PencilLine className="size-4 text-accent" aria-hidden />
                  {t('changed')} <span className="text-soft">{changed.length}</span>
                </h3>
                <ul className="space-y-2">
                  {changed.map((entry) => (
                    <li key={entry.entry_id} className="border-l-2 border-accent pl-3">
                      <p className="text-xs text-soft">{word('state', entry.field)}</p>
                      <p>
                        <span className="sr-only">{t('before')}: </span>
                        <del className="text-soft">{entry.before}</del>
                      </p>
                      <p>
                        <span className="sr-only">{t('after')}: </span>
                        {entry.after}
                      </p>
                    </li>
                  ))}
                </ul>
              </section>
            )}
            <Entries heading={t('removed')} entries={removed} sign="minus" />
          </div>
        )
      }
    </Shown>
  );
}

function Entries({ heading, entries, sign }: { heading: string; entries: Provenance[]; sign: 'plus' | 'minus' }) {
  const { word } = useWords();
  const Icon = sign === 'plus' ? Plus : Minus;
  if (!entries.length) return null;
  return (
    <section>
      <h3 className="mb-1.5 flex items-center gap-1.5 font-medium">
        <Icon className={sign === 'plus' ? 'size-4 text-good' : 'size-4 text-bad'} aria-hidden />
        {heading} <span className="text-soft">{entries.length}</span>
      </h3>
      <ul className="space-y-1.5">
        {entries.map((entry) => (
          <li key={entry.entry_id} className={`border-l-2 pl-3 ${sign === 'plus' ? 'border-good' : 'border-bad'}`}>
            <span className="text-xs text-soft">{word('state', entry.field)}: </span>
            {entry.text}
            <Originals seqs={entry.from_seqs} />
          </li>
        ))}
      </ul>
    </section>
  );
}
