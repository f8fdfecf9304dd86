'use client';

import { ArrowDown, RefreshCw } from 'lucide-react';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useWords } from '@/i18n/provider';
import { useAnchors } from '@/state/anchors';
import { useBesides } from '@/state/besides';
import { useCompactions } from '@/state/compactions';
import { useConversation } from '@/state/conversation';
import type { History } from '@/state/history';
import { useNavigation } from '@/state/navigation';
import { Button } from '@/ui/button';
import { Failure, useRepeated } from '@/ui/loaded';
import { Spinner } from '@/ui/spinner';
import { CompactionDivider, RunningDivider } from './compaction-divider';
import { entriesOf } from './entries';
import type { Exchange } from './exchange';
import { LongText } from './long-text';
import { type MessageActions, MessageRow, MOST_OF_A_QUESTION } from './message-row';
import { RunningReply } from './running-reply';
import { useScrolling } from './scrolling';

const NO_ANCHORS: never[] = [];

interface Props {
  history: History;
  exchange: Exchange;
  actions: MessageActions;
}

export function Thread({ history, exchange, actions }: Props) {
  const { t } = useWords();
  const { id, revisions, compacting, noteCompactions } = useConversation();
  const { message: wanted, open } = useNavigation();
  const [marked, setMarked] = useState<number | null>(null);
  const { messages, atStart, atEnd, loading } = history;

  const first = messages[0];
  const last = messages.at(-1);
  const compactions = useCompactions(id, first?.created_at ?? null, revisions.compactions);
  useEffect(() => noteCompactions(compactions), [compactions, noteCompactions]);
  const anchors = useAnchors(id, first?.seq ?? null, last?.seq ?? null, revisions.states + revisions.changed);
  const besides = useBesides(id, messages, revisions.changed);
  const isBusy = exchange.active;
  const shown = useMemo(
    () => (isBusy ? messages.filter((one) => one.seq <= exchange.base || one.role === 'user') : messages),
    [messages, isBusy, exchange.base],
  );
  const entries = useMemo(() => entriesOf(shown, compactions, atEnd), [shown, compactions, atEnd]);

  const onTop = useCallback(() => {
    if (!atStart && loading === null) void history.older();
  }, [atStart, loading, history]);
  const onBottom = useCallback(() => {
    if (!atEnd && loading === null) void history.newer();
  }, [atEnd, loading, history]);
  const { frame, inner, isAtBottom, toBottom, toMessage } = useScrolling({ content: entries, onTop, onBottom, atEnd });

  // A message to which a link leads is shown, and marked for a moment.
  const sought = useRef<number | null>(null);
  useEffect(() => {
    if (wanted === null) return;
    if (toMessage(wanted)) {
      setMarked(wanted);
      sought.current = null;
      open({ message: null }, true);
    } else if (sought.current !== wanted && loading !== 'first') {
      sought.current = wanted;
      void history.around(wanted);
    }
  }, [wanted, entries, loading, history, open, toMessage]);

  const send = exchange.question;
  useEffect(() => {
    if (send && atEnd) toBottom();
  }, [send, atEnd, toBottom]);

  const goToLatest = () => {
    if (atEnd) toBottom();
    else void history.latest().then(toBottom);
  };
  const lastReply = atEnd && last?.role === 'assistant' ? last.id : null;

  const { again, latest, newer } = history;
  const hasMessages = messages.length > 0;
  const readAgain = useCallback(() => {
    void (hasMessages ? again() : latest());
    if (hasMessages && atEnd) void newer();
  }, [hasMessages, atEnd, again, latest, newer]);
  useRepeated(history.error, readAgain);

  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      {/* Outside of what scrolls: readers at the end would not see it at the beginning. */}
      {Boolean(history.error) && (
        <div className="mx-auto w-full max-w-3xl px-4 pt-4">
          <Failure error={history.error} onRetry={readAgain} />
        </div>
      )}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls is reached by keyboard */}
      <div ref={frame} tabIndex={0} role="log" aria-label={t('history')} aria-live="off" className="min-h-0 flex-1 overflow-y-auto [overflow-anchor:none] focus-visible:-outline-offset-2 print:h-auto print:overflow-visible" data-testid="thread">
        <div ref={inner} className="mx-auto w-full max-w-3xl px-4 pt-4 pb-6">
          {!atStart && messages.length > 0 && (
            <p className="flex h-10 items-center justify-center gap-2 text-xs text-soft">
              {loading === 'older' && <Spinner className="size-3.5" />}
              {t('earlier_messages')}
            </p>
          )}
          {loading === 'first' && messages.length === 0 && (
            <p className="flex justify-center p-10 text-soft" role="status">
              <Spinner className="size-5" />
              <span className="sr-only">{t('loading')}</span>
            </p>
          )}
          {entries.map((entry) =>
            entry.kind === 'message' ? (
              <MessageRow
                key={entry.message.id}
                message={entry.message}
                anchors={anchors.get(entry.message.seq) ?? NO_ANCHORS}
                besides={besides.get(entry.message.id)}
                isMarked={marked === entry.message.seq}
                canRegenerate={!isBusy && entry.message.id === lastReply}
                actions={actions}
              />
            ) : (
              <CompactionDivider key={entry.compaction.id} compaction={entry.compaction} />
            ),
          )}
          {atEnd && exchange.question !== null && (
            <article className="flex flex-col items-end py-2">
              <div className="max-w-[85%] rounded-2xl rounded-br-md bg-accent-wash px-3.5 py-2">
                <LongText text={exchange.question} most={MOST_OF_A_QUESTION} />
              </div>
            </article>
          )}
          {atEnd && compacting && <RunningDivider trigger={compacting.trigger} since={compacting.since} />}
          {atEnd && (exchange.active || (exchange.reply && last?.role === 'user')) && (
            <RunningReply reply={exchange.reply} active={exchange.active} />
          )}
          {atEnd && !isBusy && last?.role === 'user' && (
            <p className="flex flex-wrap items-center justify-end gap-2 py-1 text-sm text-soft">
              {t('no_reply')}
              <Button onClick={() => exchange.regenerate(last)}>
                <RefreshCw className="size-4" aria-hidden />
                {t('ask_again')}
              </Button>
            </p>
          )}
          {Boolean(exchange.error) && !exchange.active && <Failure error={exchange.error} />}
        </div>
      </div>
      {!isAtBottom && (
        <Button
          onClick={goToLatest}
          className="appears absolute bottom-3 left-1/2 -translate-x-1/2 rounded-full shadow-md print:hidden"
        >
          <ArrowDown className="size-4" aria-hidden />
          {t('latest')}
        </Button>
      )}
    </div>
  );
}
