'use client';

import { X } from 'lucide-react';
import { Dialog as Primitive } from 'radix-ui';
import { type ReactNode, useRef } from 'react';
import { useWords } from '@/i18n/provider';
import { useBackCloses } from '@/state/panels';
import { Button } from './button';
import { classes } from './classes';

interface Props {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  description?: string;
  children: ReactNode;
  /** Shown in the middle, or at the left edge over the whole height. */
  side?: 'middle' | 'left';
  wide?: boolean;
  /** The dialog is for typing: the focus starts in its first field, not on the button that closes it. */
  toType?: boolean;
}

export function Dialog(props: Props) {
  const { open, onOpenChange, title, description, children, side = 'middle', wide = false, toType = false } = props;
  const { t } = useWords();
  useBackCloses(open, () => onOpenChange(false));
  const inMiddle = side === 'middle';
  // The dialog opens from many places, so no trigger is known to which the focus could return.
  const before = useRef<HTMLElement | null>(null);
  const content = useRef<HTMLDivElement>(null);
  const begin = (event: Event) => {
    before.current = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    const field = toType ? content.current?.querySelector('input') : null;
    if (!field) return;
    event.preventDefault();
    field.focus();
  };
  const goBack = (event: Event) => {
    event.preventDefault();
    // What opened the dialog may have gone with what was done in it, such as a message that was erased.
    const place = before.current?.isConnected ? before.current : document.querySelector<HTMLElement>('[role=log]');
    place?.focus();
  };
  return (
    <Primitive.Root open={open} onOpenChange={onOpenChange}>
      <Primitive.Portal>
        <Primitive.Overlay className="appears fixed inset-0 z-40 bg-black/45" />
        <Primitive.Content
          ref={content}
          onOpenAutoFocus={begin}
          onCloseAutoFocus={goBack}
          {...(description ? {} : { 'aria-describedby': undefined })}
          className={classes(
            'appears fixed z-50 flex flex-col border-line bg-surface shadow-xl focus:outline-none',
            inMiddle
              ? 'top-[6dvh] left-1/2 max-h-[86dvh] w-[calc(100vw-1.5rem)] -translate-x-1/2 rounded-2xl border'
              : 'inset-y-0 left-0 w-[min(20rem,85vw)] border-r',
            inMiddle && (wide ? 'max-w-3xl' : 'max-w-lg'),
          )}
        >
          <div className="flex items-start gap-3 px-4 pt-3.5 pb-1">
            <div className="min-w-0 flex-1">
              <Primitive.Title className="text-base font-semibold">{title}</Primitive.Title>
              {description && (
                <Primitive.Description className="mt-0.5 text-sm text-soft">{description}</Primitive.Description>
              )}
            </div>
            <Primitive.Close asChild>
              <Button look="quiet" square aria-label={t('close')}>
                <X className="size-4" aria-hidden />
              </Button>
            </Primitive.Close>
          </div>
          <div className={classes('min-h-0 flex-1 overflow-y-auto', inMiddle && 'px-4 pt-1 pb-4')} tabIndex={-1}>
            {children}
          </div>
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  );
}
