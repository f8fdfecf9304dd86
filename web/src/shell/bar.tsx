'use client';

import { Menu as MenuIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import { useWords } from '@/i18n/provider';
import { Button } from '@/ui/button';
import { Preferences } from './preferences';

export function Bar({ title, onOpenList, children }: { title: string; onOpenList: () => void; children?: ReactNode }) {
  const { t } = useWords();
  return (
    <header className="flex h-13 shrink-0 items-center gap-1.5 border-b border-line px-2 sm:px-3 print:[&_button]:hidden">
      <Button look="quiet" square className="md:hidden" aria-label={t('conversations')} onClick={onOpenList}>
        <MenuIcon className="size-4.5" aria-hidden />
      </Button>
      {/* A conversation that is not read yet, or is gone, has no title. */}
      <h1 className="min-w-0 flex-1 truncate px-1 text-sm font-semibold">{title || <span className="sr-only">Throughline</span>}</h1>
      {children}
      <Preferences />
    </header>
  );
}
