'use client';

import { ChevronDown, FoldVertical, TriangleAlert } from 'lucide-react';
import { useId, useState } from 'react';
import type { Compaction } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { part } from '@/state/part';
import { Boundary } from '@/ui/boundary';
import { Chip } from '@/ui/chip';
import { classes } from '@/ui/classes';
import { Spinner } from '@/ui/spinner';
import { Elapsed } from './elapsed';

const CompactionState = part(
  () => import('./compaction-state').then((states) => states.CompactionState),
  <p className="flex h-24 items-center justify-center text-soft">
    <Spinner className="size-5" />
  </p>,
);

/** The place where the history was folded: by how much, how long it took, and what replaces it now. */
export function CompactionDivider({ compaction }: { compaction: Compaction }) {
  const { t, word, number, seconds } = useWords();
  const [open, setOpen] = useState(false);
  const panel = useId();
  const isApplied = compaction.status === 'applied';
  if (!isApplied) return <FailedCompaction compaction={compaction} />;
  return (
    <section className="my-5" data-testid="compaction" aria-label={`${t('compaction')} #${compaction.from_seq}–${compaction.to_seq}`}>
      <div className="flex items-center gap-2">
        <span className="h-px flex-1 bg-line" aria-hidden />
        <button
          type="button"
          aria-expanded={open}
          aria-controls={panel}
          onClick={() => setOpen(!open)}
          className="flex max-w-[88%] flex-wrap items-center justify-center gap-x-2 gap-y-0.5 rounded-2xl border border-line bg-surface px-3 py-1.5 text-xs text-soft hover:border-accent hover:text-ink"
        >
          <FoldVertical className="size-3.5 text-accent" aria-hidden />
          <span className="font-medium text-ink">{t('folded', { count: compaction.messages_covered })}</span>
          {compaction.tokens_before !== null && compaction.tokens_after !== null && (
            <span className="tabular-nums">
              {t('tokens_change', { before: number(compaction.tokens_before), after: number(compaction.tokens_after) })}
            </span>
          )}
          {compaction.duration_ms !== null && (
            <span className="tabular-nums">{t('seconds', { seconds: seconds(compaction.duration_ms) })}</span>
          )}
          <span>{word('trigger', compaction.trigger)}</span>
          {compaction.repairs.length > 0 && <Chip tone="warn">{t('repaired')}</Chip>}
          <ChevronDown className={classes('size-3.5 transition-transform', open && 'rotate-180')} aria-hidden />
        </button>
        <span className="h-px flex-1 bg-line" aria-hidden />
      </div>
      <div id={panel}>
        {open && (
          <Boundary>
            <CompactionState compaction={compaction} />
          </Boundary>
        )}
      </div>
    </section>
  );
}

function FailedCompaction({ compaction }: { compaction: Compaction }) {
  const { t, word } = useWords();
  return (
    <p className="my-4 flex items-center justify-center gap-1.5 text-xs text-warn">
      <TriangleAlert className="size-3.5 shrink-0" aria-hidden />
      <span>
        {t('compaction')} {word('trigger', compaction.trigger)}: {word('status', compaction.status)}
        {compaction.reason && ` (${word('reason', compaction.reason)})`}. {t('nothing_lost')}
      </span>
    </p>
  );
}

/** A running compaction, with its time so far and no guess about its end. */
export function RunningDivider({ trigger, since }: { trigger: string; since: number }) {
  const { t, word } = useWords();
  return (
    <div className="my-5 flex items-center gap-2" role="status" data-testid="compacting">
      <span className="h-px flex-1 bg-line" aria-hidden />
      <span className="flex items-center gap-2 rounded-full border border-line bg-surface px-3 py-1.5 text-xs text-soft">
        <Spinner className="size-3.5 text-accent" />
        {t('compacting')} {trigger && word('trigger', trigger)} <Elapsed since={since} />
      </span>
      <span className="h-px flex-1 bg-line" aria-hidden />
    </div>
  );
}
