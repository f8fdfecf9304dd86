'use client';

import { Anchor as AnchorIcon } from 'lucide-react';
import { useEffect, useState } from 'react';
import { setAnchorStatus } from '@/api/resources';
import type { Anchor, AnchorStatus } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { classes } from '@/ui/classes';
import { Menu, MenuChoice, MenuHeading } from '@/ui/menu';

const STATUSES: AnchorStatus[] = ['active', 'resolved', 'superseded', 'withdrawn'];

const SHOWN = 4;

interface Props {
  anchors: Anchor[];
  right?: boolean;
  /** Called with why a status was not changed; `null` once it is tried. */
  onFailure: (error: unknown) => void;
}

/** The passages of a message that are kept word for word, each with its type and its status, which can be corrected. */
export function AnchorChips({ anchors, right = false, onFailure }: Props) {
  const { t } = useWords();
  const [all, setAll] = useState(false);
  if (!anchors.length) return null;
  const shown = all ? anchors : anchors.slice(0, SHOWN);
  return (
    <ul className={classes('mt-1.5 flex flex-wrap gap-1', right && 'justify-end')} aria-label={t('anchors')}>
      {shown.map((anchor) => (
        <li key={anchor.id} className="max-w-full">
          <AnchorChip given={anchor} onFailure={onFailure} />
        </li>
      ))}
      {shown.length < anchors.length && (
        <li>
          <button
            type="button"
            onClick={() => setAll(true)}
            className="rounded-full px-2 text-xs leading-5 text-soft hover:text-ink hover:underline"
          >
            {t('more_anchors', { count: anchors.length - shown.length })}
          </button>
        </li>
      )}
    </ul>
  );
}

function AnchorChip({ given, onFailure }: { given: Anchor; onFailure: Props['onFailure'] }) {
  const { t } = useWords();
  const { id } = useConversation();
  const [changed, setChanged] = useState<AnchorStatus | null>(null);
  // Anchors that are read again have what was chosen here, or what became of it since.
  useEffect(() => setChanged(null), [given]);
  const status = changed ?? given.status;
  const change = (next: AnchorStatus) => {
    setChanged(next);
    onFailure(null);
    setAnchorStatus(id, given.id, next).catch((error: unknown) => {
      setChanged(null);
      onFailure(error);
    });
  };
  return (
    <Menu
      trigger={
        <button
          type="button"
          title={given.content}
          data-testid="anchor"
          className={classes(
            'inline-flex max-w-full items-center gap-1 rounded-full border border-line bg-surface px-2 text-xs leading-5 text-soft hover:border-accent hover:text-ink',
            status !== 'active' && 'line-through decoration-1',
          )}
        >
          <AnchorIcon className="size-3 shrink-0" aria-hidden />
          <span className="truncate">{t(`anchor_${given.type}`)}</span>
          {status !== 'active' && <span className="sr-only">({t(`anchor_${status}`)})</span>}
        </button>
      }
    >
      <MenuHeading>{t(`anchor_${given.type}`)}</MenuHeading>
      <p className="max-w-72 px-2.5 pb-1.5 text-sm">“{given.content}”</p>
      <MenuChoice
        value={status}
        options={STATUSES.map((value) => ({ value, label: t(`anchor_${value}`) }))}
        onChange={change}
      />
    </Menu>
  );
}
