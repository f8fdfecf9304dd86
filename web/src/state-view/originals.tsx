'use client';

import { useWords } from '@/i18n/provider';
import { useOpener } from '@/state/opener';

const SHOWN = 8;

/** The messages that something is based on, each with a link to the original. */
export function Originals({ seqs }: { seqs: number[] }) {
  const { t } = useWords();
  const opener = useOpener();
  if (!seqs.length) return null;
  return (
    <span className="ml-1.5 inline-flex flex-wrap gap-1 align-[1px]">
      {seqs.slice(0, SHOWN).map((seq) => (
        <button
          key={seq}
          type="button"
          aria-label={t('open_original', { seq: String(seq) })}
          title={t('open_original', { seq: String(seq) })}
          onClick={() => opener.message(seq)}
          className="rounded-md bg-accent-wash px-1.5 text-xs leading-5 font-medium text-accent tabular-nums hover:underline"
        >
          #{seq}
        </button>
      ))}
      {seqs.length > SHOWN && <span className="text-xs leading-5 text-soft">+{seqs.length - SHOWN}</span>}
    </span>
  );
}
