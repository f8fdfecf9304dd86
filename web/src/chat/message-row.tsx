'use client';

import { Copy, Ellipsis, Pin, PinOff, RefreshCw, Trash2 } from 'lucide-react';
import { memo, type ReactNode } from 'react';
import type { Anchor, Message } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { Button } from '@/ui/button';
import { Chip } from '@/ui/chip';
import { classes } from '@/ui/classes';
import { copyText } from '@/ui/copy';
import { Menu, MenuItem, MenuLine } from '@/ui/menu';
import { AnchorChips } from './anchor-chips';
import type { Besides } from './besides';
import { LongText } from './long-text';
import { Markdown } from './markdown';
import { MessageParts, Thoughts } from './message-parts';
import { Notices, Sources } from './sources';
import { textsOf } from './texts';

/** Browsers need many seconds to set a text of some megabytes. */
export const MOST_OF_A_QUESTION = 100_000;

export interface MessageActions {
  pin: (message: Message) => void;
  erase: (message: Message) => void;
  regenerate: (message: Message) => void;
  /** Called with why something else that was asked of a message did not happen; `null` once it is tried. */
  failed: (error: unknown) => void;
}

interface Props {
  message: Message;
  anchors: Anchor[];
  besides?: Besides;
  isMarked: boolean;
  canRegenerate: boolean;
  actions: MessageActions;
}

/** A stored message. */
export const MessageRow = memo(function MessageRow({ message, anchors, besides, isMarked, canRegenerate, actions }: Props) {
  const { t, word, moment } = useWords();
  const isUser = message.role === 'user';
  if (message.status === 'erased') return <Gone seq={message.seq} text={t('erased')} />;
  if (message.status === 'superseded') return <Superseded message={message} />;
  return (
    <article
      data-seq={message.seq}
      data-role={message.role}
      aria-label={`${word('role', message.role)}, ${t('message_number', { seq: String(message.seq) })}`}
      className={classes('group/row rounded-2xl py-2', isMarked && 'marked', isUser && 'flex flex-col items-end')}
    >
      <div className={isUser ? 'max-w-[85%] rounded-2xl rounded-br-md bg-accent-wash px-3.5 py-2' : 'max-w-full'}>
        {message.reasoning && <Thoughts text={message.reasoning} />}
        {textsOf(message).map((text, place) =>
          isUser ? <LongText key={place} text={text} most={MOST_OF_A_QUESTION} /> : <Markdown key={place} text={text} />,
        )}
        <MessageParts parts={message.parts} />
        {message.role === 'system' && <Chip>{word('role', 'system')}</Chip>}
      </div>
      {message.status === 'interrupted' && (
        <p className="mt-1 text-xs text-warn">
          <Chip tone="warn">{t('interrupted')}</Chip>
        </p>
      )}
      <AnchorChips anchors={anchors} right={isUser} onFailure={actions.failed} />
      {besides && <Sources found={besides} />}
      {besides && <Notices notices={besides.notices} />}
      <div className={classes('mt-1 flex h-6 items-center gap-2 text-xs text-soft', isUser && 'flex-row-reverse')}>
        <span className="tabular-nums">#{message.seq}</span>
        <time dateTime={message.created_at} className="tabular-nums">
          {moment(message.created_at)}
        </time>
        {message.protected_reason === 'pinned' && (
          <Chip tone="accent">
            <Pin className="size-3" aria-hidden />
            {t('pinned')}
          </Chip>
        )}
        {message.is_protected && message.protected_reason !== 'pinned' && (
          <Chip title={t('held_what')}>{t(`held_${message.protected_reason as 'system'}`)}</Chip>
        )}
        <RowMenu message={message} canRegenerate={canRegenerate} actions={actions} />
      </div>
    </article>
  );
});

function RowMenu({ message, canRegenerate, actions }: Pick<Props, 'message' | 'canRegenerate' | 'actions'>) {
  const { t } = useWords();
  const isPinned = message.protected_reason === 'pinned';
  const copy = () => {
    actions.failed(null);
    copyText(textsOf(message).join('\n\n')).catch(actions.failed);
  };
  return (
    <span className="flex items-center opacity-0 transition-opacity group-focus-within/row:opacity-100 group-hover/row:opacity-100 [@media(hover:none)]:opacity-100">
      {canRegenerate && (
        <Button look="quiet" square className="size-6" aria-label={t('regenerate')} onClick={() => actions.regenerate(message)}>
          <RefreshCw className="size-3.5" aria-hidden />
        </Button>
      )}
      <Button look="quiet" square className="size-6" aria-label={isPinned ? t('unpin') : t('pin')} onClick={() => actions.pin(message)}>
        {isPinned ? <PinOff className="size-3.5" aria-hidden /> : <Pin className="size-3.5" aria-hidden />}
      </Button>
      <Menu
        trigger={
          <Button look="quiet" square className="size-6" aria-label={t('more')}>
            <Ellipsis className="size-3.5" aria-hidden />
          </Button>
        }
      >
        <MenuItem icon={<Copy className="size-4" aria-hidden />} onSelect={copy}>
          {t('copy')}
        </MenuItem>
        <MenuLine />
        <MenuItem danger icon={<Trash2 className="size-4" aria-hidden />} onSelect={() => actions.erase(message)}>
          {t('erase')}
        </MenuItem>
      </Menu>
    </span>
  );
}

function Gone({ seq, text }: { seq: number; text: ReactNode }) {
  return (
    <article data-seq={seq} className="py-2 text-sm text-soft italic">
      {text} <span className="not-italic tabular-nums">#{seq}</span>
    </article>
  );
}

function Superseded({ message }: { message: Message }) {
  const { t } = useWords();
  return (
    <article data-seq={message.seq} className="py-1">
      <details className="text-sm text-soft">
        <summary className="w-fit rounded-md text-xs">
          {t('superseded')} <span className="tabular-nums">#{message.seq}</span>
        </summary>
        <div className="mt-1 border-l-2 border-line pl-3">
          <Markdown text={message.content} />
        </div>
      </details>
    </article>
  );
}
