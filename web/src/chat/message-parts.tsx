'use client';

import { Brain, ChevronRight, Paperclip, Wrench, type LucideIcon } from 'lucide-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { useWords } from '@/i18n/provider';
import { Spinner } from '@/ui/spinner';
import { Markdown } from './markdown';
import { sizeOf } from './sizes';

type Part = Record<string, unknown>;

/** Calls, results and attachments of a stored message. */
export function MessageParts({ parts }: { parts: Part[] }) {
  const { t, number } = useWords();
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
            <Paperclip className="size-3.5 shrink-0" aria-hidden />
            <span className="min-w-0">
              {[part.name, part.media_type, part.url].filter((one) => typeof one === 'string' && one).join(' · ')}
              {typeof part.data === 'string' && ` · ${sizeOf(bytesOf(part.data), number)}`}
            </span>
          </p>
        );
      default:
        return null;
    }
  });
}

/** The number of bytes that a Base64 text stands for. */
const bytesOf = (data: string): number => Math.floor((data.replace(/={1,2}$/, '').length * 3) / 4);

export const written = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

/** The shown thoughts of the model, folded; if opened while it thinks, they follow the newest words. */
export function Thoughts({ text, running = false }: { text: string; running?: boolean }) {
  const { t } = useWords();
  const [open, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  useEffect(() => {
    const box = frame.current;
    if (running && box && stuck.current) box.scrollTop = box.scrollHeight;
  }, [text, running, open]);
  const onScroll = () => {
    const box = frame.current;
    if (box) stuck.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
  };
  return (
    <details
      className="group my-1.5 rounded-xl border border-line bg-surface"
      data-testid="thoughts"
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary className="flex list-none items-center gap-1.5 rounded-xl px-3 py-1.5 text-xs text-soft marker:hidden">
        <ChevronRight className="size-3.5 transition-transform group-open:rotate-90" aria-hidden />
        {running ? <Spinner className="size-3.5" /> : <Brain className="size-3.5" aria-hidden />}
        {running ? t('thinking') : t('reasoning')}
      </summary>
      {open && (
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls is reached by keyboard
        <div
          ref={frame}
          tabIndex={0}
          role="region"
          aria-label={t('reasoning')}
          onScroll={onScroll}
          className="max-h-72 overflow-auto border-t border-line px-3 py-2 text-sm text-soft focus-visible:-outline-offset-2"
        >
          <Markdown text={text} running={running} />
        </div>
      )}
    </details>
  );
}

const NEAR_END = 24;

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
