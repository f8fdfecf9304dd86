'use client';

import { Download, Ellipsis, FileJson, FileText, Search, Trash2 } from 'lucide-react';
import { type ComponentType, useEffect, useMemo, useRef, useState } from 'react';
import { ApiError } from '@/api/client';
import { deleteConversation, exportConversation } from '@/api/resources';
import { ChatView } from '@/chat/chat-view';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { keepDraft } from '@/state/drafts';
import { useNavigation, VIEWS } from '@/state/navigation';
import { OpenerProvider } from '@/state/opener';
import { part } from '@/state/part';
import { Boundary } from '@/ui/boundary';
import { Button } from '@/ui/button';
import { classes } from '@/ui/classes';
import { Confirm } from '@/ui/confirm';
import { Failure } from '@/ui/loaded';
import { Menu, MenuHeading, MenuItem, MenuLine } from '@/ui/menu';
import { Spinner } from '@/ui/spinner';
import { Bar } from './bar';
import { SearchDialog } from './search-dialog';

const waiting = (
  <p className="flex justify-center p-10 text-soft">
    <Spinner className="size-5" />
  </p>
);
const viewOf = (load: () => Promise<{ default: ComponentType }>) => part(() => load().then((found) => found.default), waiting);
const OTHER_VIEWS = {
  state: viewOf(() => import('@/views/state')),
  context: viewOf(() => import('@/views/context')),
  stats: viewOf(() => import('@/views/stats')),
  timeline: viewOf(() => import('@/views/timeline')),
  settings: viewOf(() => import('@/views/settings')),
};
const SegmentDialog = part(() => import('@/views/segment-dialog').then((dialogs) => dialogs.default));

interface Props {
  onOpenList: () => void;
  onListChanged: () => void;
  firstWords: string | null;
  onFirstWordsSent: () => void;
  attaching: File[] | null;
  onAttaching: () => void;
}

/** The open conversation in one of its views. */
export function Workspace({ onOpenList, onListChanged, firstWords, onFirstWordsSent, attaching, onAttaching }: Props) {
  const { t } = useWords();
  const { id, conversation, error, revisions } = useConversation();
  const { view, open } = useNavigation();
  const [segment, setSegment] = useState<string | null>(null);
  const [isSearching, setIsSearching] = useState(false);
  const [isDeleting, setIsDeleting] = useState(false);

  const opener = useMemo(
    () => ({
      message: (seq: number) => {
        setSegment(null);
        open({ view: 'chat', message: seq });
      },
      segment: setSegment,
    }),
    [open],
  );

  const seen = useRef(0);
  useEffect(() => {
    if (revisions.messages === seen.current) return;
    seen.current = revisions.messages;
    const timer = setTimeout(onListChanged, 600);
    return () => clearTimeout(timer);
  }, [revisions.messages, onListChanged]);

  // The list may still have what was deleted in another place.
  const isGone = error instanceof ApiError && error.status === 404;
  useEffect(() => {
    if (isGone) onListChanged();
  }, [isGone, onListChanged]);

  const title = conversation ? conversation.title || t('untitled') : '';
  useEffect(() => {
    document.title = title ? `${title} · Throughline` : 'Throughline';
    return () => void (document.title = 'Throughline');
  }, [title]);

  const [unsaved, setUnsaved] = useState<{ format: 'json' | 'markdown'; error: unknown } | null>(null);
  const save = (format: 'json' | 'markdown') => {
    setUnsaved(null);
    exportConversation(id, format).catch((error: unknown) => setUnsaved({ format, error }));
  };

  const openTab = useRef<HTMLLIElement>(null);
  useEffect(() => {
    openTab.current?.scrollIntoView({ block: 'nearest', inline: 'center' }); // a promise in newer browsers: not returned
  }, [view, t]);

  const Other = view === 'chat' ? null : OTHER_VIEWS[view];
  return (
    <OpenerProvider value={opener}>
      <Bar title={title} onOpenList={onOpenList}>
        <Button look="quiet" square aria-label={t('search_messages')} onClick={() => setIsSearching(true)}>
          <Search className="size-4" aria-hidden />
        </Button>
        <Menu
          trigger={
            <Button look="quiet" square aria-label={t('conversation_menu')}>
              <Ellipsis className="size-4" aria-hidden />
            </Button>
          }
        >
          <MenuHeading>
            <Download className="mr-1 inline size-3.5" aria-hidden />
            {t('download')}
          </MenuHeading>
          <MenuItem icon={<FileJson className="size-4" aria-hidden />} onSelect={() => save('json')}>
            JSON
          </MenuItem>
          <MenuItem icon={<FileText className="size-4" aria-hidden />} onSelect={() => save('markdown')}>
            Markdown
          </MenuItem>
          <MenuLine />
          <MenuItem danger icon={<Trash2 className="size-4" aria-hidden />} onSelect={() => setIsDeleting(true)}>
            {t('delete')}
          </MenuItem>
        </Menu>
      </Bar>
      <nav className="more-beside shrink-0 overflow-x-auto border-b border-line [scrollbar-width:none] print:hidden" aria-label={t('views')}>
        <ul className="flex px-2 sm:px-3">
          {VIEWS.map((one) => (
            <li key={one} ref={one === view ? openTab : undefined}>
              <button
                type="button"
                onClick={() => open({ view: one })}
                aria-current={one === view ? 'page' : undefined}
                className={classes(
                  'h-10 border-b-2 px-3 text-sm whitespace-nowrap focus-visible:-outline-offset-2',
                  one === view ? 'border-accent font-medium text-ink' : 'border-transparent text-soft hover:text-ink',
                )}
              >
                {t(`view_${one}`)}
              </button>
            </li>
          ))}
        </ul>
      </nav>
      {unsaved && (
        <div className="mx-auto w-full max-w-3xl px-4 pt-3">
          <Failure error={unsaved.error} onRetry={() => save(unsaved.format)} />
        </div>
      )}
      <main id="content" className="flex min-h-0 flex-1 flex-col">
        <Boundary key={view}>
          {Other ? (
            // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls is reached by keyboard
            <div className="min-h-0 flex-1 overflow-y-auto print:overflow-visible" tabIndex={0} role="region" aria-label={t(`view_${view}`)}>
              <div className="mx-auto w-full max-w-4xl p-4 pb-10">
                <Other />
              </div>
            </div>
          ) : (
            <ChatView
              firstWords={firstWords}
              onFirstWordsSent={onFirstWordsSent}
              attaching={attaching}
              onAttaching={onAttaching}
            />
          )}
          {segment && <SegmentDialog segment={segment} onClose={() => setSegment(null)} />}
        </Boundary>
      </main>
      {isSearching && <SearchDialog onClose={() => setIsSearching(false)} />}
      <Confirm
        open={isDeleting}
        onOpenChange={setIsDeleting}
        title={t('delete_title')}
        what={t('delete_what')}
        action={t('delete')}
        onConfirm={async () => {
          await deleteConversation(id);
          keepDraft(id, '');
          onListChanged();
          open({ conversation: null, view: 'chat' });
        }}
      />
    </OpenerProvider>
  );
}
