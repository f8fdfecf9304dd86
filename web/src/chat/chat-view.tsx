'use client';

import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { ApiError } from '@/api/client';
import { eraseMessage, patchConversation, pinMessage } from '@/api/resources';
import type { Message } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { useFiles } from '@/state/files';
import { useHistory } from '@/state/history';
import { useNavigation } from '@/state/navigation';
import { part } from '@/state/part';
import { Failure } from '@/ui/loaded';
import { Notice } from '@/ui/notice';
import { Away } from './away';
import { Composer } from './composer';
import { Confirm } from '@/ui/confirm';
import { useExchange } from './exchange';
import { LeftDraft } from './left-draft';
import { Thread } from './thread';
import { titleOf } from './title';

const CompactDialog = part(() => import('./compact-dialog').then((dialogs) => dialogs.CompactDialog));
const FilesDialog = part(() => import('./files-dialog').then((dialogs) => dialogs.FilesDialog));

interface Props {
  /** What the reader wrote before the conversation existed; it is sent once it does. */
  firstWords: string | null;
  onFirstWordsSent: () => void;
  /** The conversation was begun in order to attach files: these, or others that the user then chooses. */
  attaching: File[] | null;
  onAttaching: () => void;
}

export function ChatView({ firstWords, onFirstWordsSent, attaching, onAttaching }: Props) {
  const { t } = useWords();
  const live = useConversation();
  const { id, revisions, compacting, gauge } = live;
  const { message: wanted } = useNavigation();
  const history = useHistory(id);
  const [failure, setFailure] = useState<unknown>(null);
  const exchange = useExchange(history, setFailure);
  const [isCompactOpen, setIsCompactOpen] = useState(false);
  const [areFilesOpen, setAreFilesOpen] = useState(attaching !== null);
  /** A dialog is loaded when it is first opened, and then stays: it tells how its work goes. */
  const wasOpen = useRef({ compact: false, files: false });
  wasOpen.current.compact ||= isCompactOpen;
  wasOpen.current.files ||= areFilesOpen;
  const files = useFiles();
  const { choose, told } = files;
  // A file may be refused long after its user has closed the dialog, or left the chat.
  const isRefused = files.chosen.some((one) => one.step === 'refused' && !one.isTold);
  useEffect(() => {
    if (isRefused) setAreFilesOpen(true);
  }, [isRefused]);
  const showFiles = useCallback(
    (open: boolean) => {
      setAreFilesOpen(open);
      if (!open) told();
    },
    [told],
  );
  const attach = useCallback(
    (given: File[]) => {
      setAreFilesOpen(true);
      choose(given);
    },
    [choose],
  );
  useEffect(() => {
    if (!attaching) return;
    choose(attaching);
    onAttaching();
  }, [attaching, choose, onAttaching]);
  const [erasing, setErasing] = useState<Message | null>(null);
  // What is told of a reply that could not be stopped is told until it ends.
  useEffect(() => setFailure(null), [exchange.active]);

  const { latest, around, newer, again } = history;
  const begins = useRef(wanted);
  useEffect(() => {
    void (begins.current ? around(begins.current) : latest());
  }, [around, latest]);
  const isReading = history.messages.length > 0 || history.loading === null;
  const atEnd = useRef(history.atEnd);
  atEnd.current = history.atEnd;
  useEffect(() => {
    if (!revisions.messages) return;
    const timer = setTimeout(() => atEnd.current && void newer(), 80);
    return () => clearTimeout(timer);
  }, [revisions.messages, newer]);
  useEffect(() => {
    if (revisions.changed) void again();
  }, [revisions.changed, again]);

  /** For users of screen readers: the history itself is not read out while it grows. */
  const [isOver, setIsOver] = useState(false);
  const wasActive = useRef(false);
  useEffect(() => {
    setIsOver(wasActive.current && !exchange.active && !exchange.error);
    wasActive.current = exchange.active;
  }, [exchange.active, exchange.error]);

  const { send } = exchange;
  const sent = useRef(false);
  useEffect(() => {
    if (firstWords === null || sent.current || !isReading) return;
    sent.current = true;
    send(firstWords);
    onFirstWordsSent();
  }, [firstWords, isReading, send, onFirstWordsSent]);

  /** A conversation that began with its files gets its title from its first words. */
  const say = (text: string) => {
    if (live.conversation && !live.conversation.title && live.conversation.message_count === 0) {
      patchConversation(id, { title: titleOf(text) }).then(live.setConversation, () => undefined);
    }
    send(text);
  };

  const { regenerate } = exchange;
  const actions = useMemo(
    () => ({
      pin: (message: Message) => {
        setFailure(null);
        pinMessage(id, message.id, message.protected_reason !== 'pinned').then(() => again(), setFailure);
      },
      erase: setErasing,
      regenerate,
      failed: setFailure,
    }),
    [id, again, regenerate],
  );
  const erase = useCallback(async () => {
    if (!erasing) return;
    await eraseMessage(id, erasing.id);
    live.refresh();
    // Its row is gone before the dialog gives the focus back.
    await again();
  }, [erasing, id, live, again]);

  if (live.error && !live.conversation) {
    return (
      <div className="space-y-3 overflow-y-auto p-4">
        <Failure error={live.error} onRetry={live.refresh} />
        {live.error instanceof ApiError && live.error.status === 404 && <LeftDraft conversation={id} />}
      </div>
    );
  }
  return (
    <>
      <Thread history={history} exchange={exchange} actions={actions} />
      <p className="sr-only" role="status" data-testid="reply-ended">
        {isOver && t('reply_ended')}
      </p>
      <div className="mx-auto w-full max-w-3xl space-y-2 px-3 pb-3 print:hidden">
        {Boolean(failure) && <Failure error={failure} />}
        <Away />
        {live.notification && (
          <div role="status">
            <Notice>{live.notification}</Notice>
          </div>
        )}
        <Composer
          conversation={id}
          gauge={gauge}
          running={exchange.active}
          stopping={exchange.stopping}
          compacting={compacting !== null}
          files={files.attached.length}
          onAttach={attach}
          onSend={say}
          onStop={exchange.stop}
          onCompact={() => setIsCompactOpen(true)}
        />
      </div>
      {wasOpen.current.files && <FilesDialog files={files} open={areFilesOpen} onOpenChange={showFiles} />}
      {wasOpen.current.compact && <CompactDialog open={isCompactOpen} onOpenChange={setIsCompactOpen} />}
      <Confirm
        open={erasing !== null}
        onOpenChange={(open) => !open && setErasing(null)}
        title={t('erase_title', { seq: String(erasing?.seq ?? '') })}
        what={t('erase_what')}
        action={t('erase')}
        onConfirm={erase}
      />
    </>
  );
}
