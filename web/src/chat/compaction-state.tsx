'use client';

import { GitCompareArrows } from 'lucide-react';
import { useMemo, useState } from 'react';
import { getState } from '@/api/resources';
import type { Compaction } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { Repairs } from '@/state-view/repairs';
import { Restore } from '@/state-view/restore';
import { Difference } from '@/state-view/difference';
import { StateFields } from '@/state-view/state-fields';
import { useConversation } from '@/state/conversation';
import { OpenerProvider, useOpener } from '@/state/opener';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { Shown, useLoaded } from '@/ui/loaded';

/** What an opened compaction shows: the state that it made, and how it was made. */
export function CompactionState({ compaction }: { compaction: Compaction }) {
  const { t, word } = useWords();
  const { id, revisions } = useConversation();
  const [comparing, setComparing] = useState(false);
  const version = compaction.state_version_after;
  const state = useLoaded(
    (signal) => (version === null ? Promise.resolve(null) : getState(id, version, signal).then((one) => one ?? null)),
    [id, version, revisions.states],
  );
  const before = compaction.state_version_before;
  const opener = useOpener();
  // An original is shown behind the dialog.
  const outside = useMemo(
    () => ({
      ...opener,
      message: (seq: number) => {
        setComparing(false);
        opener.message(seq);
      },
    }),
    [opener],
  );
  return (
    <div className="appears mt-3 space-y-4 rounded-2xl border border-line bg-surface p-4" data-testid="compaction-state">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <h2 className="min-w-40 flex-1 text-sm font-semibold">
          {t('state_version', { version: version ?? before })}
          <span className="block text-xs font-normal text-soft">
            {t('folded_range', { from: String(compaction.from_seq), to: String(compaction.to_seq) })}
            {compaction.model && ` · ${compaction.model}`}
            {compaction.focus && ` · ${t('focus')}: ${compaction.focus}`}
          </span>
        </h2>
        {before > 0 && version !== null && (
          <Button onClick={() => setComparing(true)}>
            <GitCompareArrows className="size-4" aria-hidden />
            {t('compare_with', { version: before })}
          </Button>
        )}
        {version !== null && <Restore version={version} />}
      </div>
      <Shown of={state}>
        {(found) =>
          found ? <StateFields version={found} /> : <p className="text-sm whitespace-pre-wrap">{compaction.summary}</p>
        }
      </Shown>
      <Repairs repairs={compaction.repairs} />
      {compaction.attempts.length > 1 && (
        <p className="text-xs text-soft">
          {t('attempts', { count: compaction.attempts.length })}:{' '}
          {compaction.attempts
            .map((one) => word('outcome', one.outcome) + (one.reason ? ` (${word('reason', one.reason)})` : ''))
            .join(', ')}
        </p>
      )}
      {version !== null && (
        <Dialog
          open={comparing}
          onOpenChange={setComparing}
          wide
          title={t('difference_title', { a: before, b: version })}
        >
          <OpenerProvider value={outside}>
            <Difference a={before} b={version} />
          </OpenerProvider>
        </Dialog>
      )}
    </div>
  );
}
