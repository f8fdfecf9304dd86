'use client';

import { useCallback, useEffect, useState } from 'react';
import { useWords } from '@/i18n/provider';
import { ConversationProvider } from '@/state/conversation';
import { giveBack, keepSent, moveDraft } from '@/state/drafts';
import { useNavigation } from '@/state/navigation';
import { Dialog } from '@/ui/dialog';
import { type Begun, NewConversation } from '@/chat/new-conversation';
import { Bar } from './bar';
import { ConversationList } from './conversation-list';
import { Workspace } from './workspace';

/** The list of conversations next to the open one; on a phone the list is a sheet. */
export function Frame() {
  const { t } = useWords();
  const { conversation, view, open } = useNavigation();
  const [isListOpen, setIsListOpen] = useState(false);
  const [firstWords, setFirstWords] = useState<{ id: string; words: string } | null>(null);
  const [attaching, setAttaching] = useState<{ id: string; files: File[] } | null>(null);
  const [listed, setListed] = useState(0);
  const closeList = useCallback(() => setIsListOpen(false), []);
  const forgetFirstWords = useCallback(() => setFirstWords(null), []);
  const forgetAttaching = useCallback(() => setAttaching(null), []);
  const listAgain = useCallback(() => setListed((before) => before + 1), []);

  // Another window or device may have begun or renamed conversations.
  useEffect(() => {
    window.addEventListener('focus', listAgain);
    return () => window.removeEventListener('focus', listAgain);
  }, [listAgain]);

  const begin = useCallback(
    ({ id, words, files, isLeft }: Begun) => {
      listAgain();
      // Whoever went elsewhere meanwhile stays there, and finds in the conversation what they gave it.
      if (isLeft) {
        if (words === null) setAttaching({ id, files });
        else {
          keepSent(null, null);
          giveBack(id, words);
        }
        return;
      }
      moveDraft(id, words);
      // Those of an earlier conversation, which was left before they could be sent.
      if (firstWords) giveBack(firstWords.id, firstWords.words);
      setFirstWords(words === null ? null : { id, words });
      setAttaching(words === null ? { id, files } : null);
      open({ conversation: id, view: 'chat' });
    },
    [open, listAgain, firstWords],
  );

  // Whoever goes to another conversation before they are sent finds them in their field.
  useEffect(() => {
    if (!firstWords || !conversation || conversation === firstWords.id) return;
    giveBack(firstWords.id, firstWords.words);
    setFirstWords(null);
  }, [conversation, firstWords]);

  return (
    <div className="flex h-dvh print:h-auto">
      {(view === 'chat' ? (['content', 'message'] as const) : (['content'] as const)).map((place) => (
        <a
          key={place}
          href={`#${place}`}
          className="sr-only z-50 rounded-lg bg-accent px-3 py-2 text-accent-ink focus:not-sr-only focus:absolute focus:top-2 focus:left-2"
        >
          {t(`skip_to_${place}`)}
        </a>
      ))}
      <aside className="hidden w-72 shrink-0 border-r border-line bg-raised/50 md:block print:hidden" aria-label={t('conversations')}>
        <ConversationList revision={listed} />
      </aside>
      <Dialog open={isListOpen} onOpenChange={setIsListOpen} title={t('conversations')} side="left">
        <ConversationList revision={listed} onOpen={closeList} />
      </Dialog>
      <div className="flex min-w-0 flex-1 flex-col">
        {conversation ? (
          <ConversationProvider key={conversation} id={conversation}>
            <Workspace
              onOpenList={() => setIsListOpen(true)}
              onListChanged={listAgain}
              firstWords={firstWords?.id === conversation ? firstWords.words : null}
              onFirstWordsSent={forgetFirstWords}
              attaching={attaching?.id === conversation ? attaching.files : null}
              onAttaching={forgetAttaching}
            />
          </ConversationProvider>
        ) : (
          <>
            <Bar onOpenList={() => setIsListOpen(true)} title={t('new_conversation')} />
            <main id="content" className="flex min-h-0 flex-1 flex-col">
              <NewConversation onBegin={begin} />
            </main>
          </>
        )}
      </div>
    </div>
  );
}
