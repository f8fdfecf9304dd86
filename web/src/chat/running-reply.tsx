'use client';

import { useWords } from '@/i18n/provider';
import { Spinner } from '@/ui/spinner';
import { Markdown } from './markdown';
import { Fold, Thoughts, written } from './message-parts';
import { besidesOf } from './besides';
import type { Reply } from './parts';
import { keepsSelection } from './selection';
import { Notices, Sources } from './sources';

/** The reply as it comes, or what had come of one that failed: text, calls, compactions inside the turn, passages, warnings. */
export function RunningReply({ reply, active }: { reply: Reply | null; active: boolean }) {
  const { t, word, number } = useWords();
  const found = reply && besidesOf(reply.parts);
  // Passages that were found for the reply, and warnings, come in between.
  const newest = reply?.parts.findLast((part) => ['text', 'reasoning', 'tool', 'compaction'].includes(part.type));
  const isTold = newest?.type === 'reasoning' || (newest?.type === 'text' && newest.text !== '');
  // Of a reply that failed before its first word there is nothing to read.
  if (!active && !reply?.parts.some((part) => part.type === 'reasoning' || part.type === 'tool' || (part.type === 'text' && part.text))) return null;
  return (
    <article ref={keepsSelection} aria-label={word('role', 'assistant')} aria-busy={active} className="py-2" data-testid="running-reply">
      {reply?.parts.map((part, place) => {
        if (part.type === 'text') return <Markdown key={place} text={part.text} running={active} />;
        if (part.type === 'reasoning') return <Thoughts key={place} text={part.text} running={active && part === newest} />;
        if (part.type === 'tool') {
          return (
            <Fold key={place} heading={t('calls', { name: part.name })}>
              {[part.input, part.output, part.error].filter((one) => one !== undefined).map(written).join('\n\n')}
            </Fold>
          );
        }
        if (part.type === 'compaction') {
          const { data } = part;
          const isRunning = data.status === 'running' || data.status === 'queued' || data.status === 'planned';
          if (isRunning && !active) return null;
          return (
            <p key={place} className="my-3 flex items-center justify-center gap-2 text-xs text-soft" role="status">
              {isRunning && <Spinner className="size-3.5" />}
              {isRunning ? t('compacting') : `${t('compaction')}: ${word('status', data.status)}`}{' '}
              {word('trigger', data.trigger)}
              {data.tokens_before != null &&
                data.tokens_after != null &&
                ` · ${t('tokens_change', { before: number(data.tokens_before), after: number(data.tokens_after) })}`}
            </p>
          );
        }
        return null;
      })}
      {found && <Sources found={found} />}
      {found && <Notices notices={found.notices} />}
      {!active && <p className="text-xs text-soft">{t('reply_not_stored')}</p>}
      {active && !isTold && (
        <p className="flex items-center gap-2 text-sm text-soft" role="status">
          <Spinner />
          {t('thinking')}
        </p>
      )}
    </article>
  );
}
