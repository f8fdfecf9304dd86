'use client';

import type { Provenance, StateVersion } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { Chip } from '@/ui/chip';
import { Originals } from './originals';

/** A state by its fields, each entry with the messages that it is based on. */
export function StateFields({ version }: { version: StateVersion }) {
  const { t, word } = useWords();
  const fields = Object.entries(version.state);
  const isEmpty = fields.every(([, value]) => !value || (Array.isArray(value) && !value.length));
  if (isEmpty) return <p className="text-sm text-soft">{t('state_empty')}</p>;
  return (
    <dl className="space-y-4">
      {fields.map(([field, value]) => {
        const texts = Array.isArray(value) ? value.map(String) : value ? [String(value)] : [];
        if (!texts.length) return null;
        const known = version.provenance.filter((entry) => entry.field === field);
        return (
          <div key={field}>
            <dt className="mb-1 flex items-baseline gap-2 text-xs font-semibold tracking-wide text-soft uppercase">
              {word('state', field)}
              {Array.isArray(value) && <span className="font-normal">{texts.length}</span>}
            </dt>
            <dd>
              {Array.isArray(value) ? (
                <ul className="space-y-1.5">
                  {texts.map((text, place) => (
                    <Entry key={`${place}-${text}`} text={text} entry={known.find((one) => one.text === text)} />
                  ))}
                </ul>
              ) : (
                <p className="text-sm whitespace-pre-wrap">{texts[0]}</p>
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

function Entry({ text, entry }: { text: string; entry?: Provenance }) {
  const { t } = useWords();
  return (
    <li className="border-l-2 border-line pl-3 text-sm">
      {text}
      {entry?.in_doubt && (
        <span className="ml-1.5">
          <Chip tone="warn">{t('in_doubt')}</Chip>
        </span>
      )}
      {entry && <Originals seqs={entry.from_seqs} />}
      {entry && entry.superseded.length > 0 && (
        <p className="mt-0.5 text-xs text-soft">
          {t('replaces')}: <s>{entry.superseded.join(' · ')}</s>
        </p>
      )}
    </li>
  );
}
