'use client';

import { BookOpenText } from 'lucide-react';
import { useWords } from '@/i18n/provider';
import { useOpener } from '@/state/opener';
import type { LiveNotice } from './parts';
import type { Besides } from './besides';
import { warningWords } from './warnings';

/** Earlier messages that were brought back for a reply, numbered; each opens the original. */
export function Sources({ found }: { found: Besides }) {
  const { t } = useWords();
  const opener = useOpener();
  if (!found.recalled.length) return null;
  return (
    <div className="mt-2 rounded-xl border border-line bg-surface px-3 py-2 text-xs" data-testid="sources">
      <p className="flex items-center gap-1.5 font-medium text-soft">
        <BookOpenText className="size-3.5" aria-hidden />
        {t('recalled_for')}
      </p>
      <ol className="mt-1 space-y-0.5">
        {found.recalled.map((passage, place) => {
          const first = passage.seqs[0];
          const title = passage.seqs.map((seq) => found.titles[`seq:${seq}`]).find(Boolean);
          return (
            <li key={`${passage.segment_id}-${first}`} className="flex gap-1.5">
              <span className="flex-none text-soft tabular-nums">{place + 1}.</span>
              <button
                type="button"
                disabled={first === undefined}
                onClick={() => first !== undefined && opener.message(first)}
                className="min-w-0 text-left text-accent hover:underline"
              >
                {title ?? t('messages_range', { from: String(first), to: String(passage.seqs.at(-1)) })}
                <span className="ml-1 text-soft tabular-nums">
                  #{passage.seqs.length > 1 ? `${first}–${passage.seqs.at(-1)}` : first}
                </span>
              </button>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

export function Notices({ notices }: { notices: LiveNotice[] }) {
  const { t, word } = useWords();
  if (!notices.length) return null;
  return (
    <ul className="mt-2 space-y-0.5 text-xs text-warn">
      {notices.map((notice, place) => (
        <li key={place}>
          <span className="font-medium">{t('notice')}: </span>
          {warningWords(notice.code, word)}
        </li>
      ))}
    </ul>
  );
}
