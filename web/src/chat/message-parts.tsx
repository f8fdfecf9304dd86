'use client';

import { Brain, ChevronRight, Paperclip, Wrench, type LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import { useWords } from '@/i18n/provider';

type Part = Record<string, unknown>;

/** Calls, results and attachments of a stored message. */
export function MessageParts({ parts }: { parts: Part[] }) {
  const { t } = useWords();
  return parts.map((part, place) => {
    switch (part.type) {
      case 'tool_call':
        return (
          <Fold key={place} heading={t('calls', { name: String(part.name) })}>
            {written(part.arguments)}
          </Fold>
        );
      case 'tool_result':
        return (
          <Fold key={place} heading={t('result_of', { name: String(part.name ?? t('tool')) })}>
            {written(part.content)}
          </Fold>
        );
      case 'media':
        return (
          <p key={place} className="flex items-center gap-1.5 text-sm text-soft">
            <Paperclip className="size-3.5" aria-hidden />
            {String(part.media_type)}
            {typeof part.url === 'string' && ` · ${part.url}`}
          </p>
        );
      default:
        return null;
    }
  });
}

export const written = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

/** What the model showed of its thoughts, folded. */
export function Thoughts({ text }: { text: string }) {
  const { t } = useWords();
  return (
    <Fold heading={t('reasoning')} icon={Brain}>
      {text}
    </Fold>
  );
}

export function Fold({ heading, icon: Icon = Wrench, children }: { heading: string; icon?: LucideIcon; children: ReactNode }) {
  return (
    <details className="group my-1.5 rounded-xl border border-line bg-surface text-xs">
      <summary className="flex list-none items-center gap-1.5 px-3 py-1.5 text-soft marker:hidden">
        <ChevronRight className="size-3.5 transition-transform group-open:rotate-90" aria-hidden />
        <Icon className="size-3.5" aria-hidden />
        {heading}
      </summary>
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls is reached by keyboard */}
      <pre tabIndex={0} className="max-h-72 overflow-auto border-t border-line px-3 py-2 font-mono whitespace-pre-wrap">
        {children}
      </pre>
    </details>
  );
}
