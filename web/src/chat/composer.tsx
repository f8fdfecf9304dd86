'use client';

import { ArrowUp, FoldVertical, Paperclip, Square } from 'lucide-react';
import { type FormEvent, type KeyboardEvent, useEffect, useRef } from 'react';
import type { Gauge } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { keepDraft, useDraft } from '@/state/drafts';
import { Button } from '@/ui/button';
import { Spinner } from '@/ui/spinner';
import { useGivenFiles } from './given-files';
import { GaugeMeter } from './gauge';

interface Props {
  /** `null` for a conversation that has not begun. */
  conversation: string | null;
  gauge?: Gauge;
  running: boolean;
  stopping: boolean;
  compacting: boolean;
  /** How many files the conversation has. */
  files?: number;
  /** Called with files to attach; without any, the user chooses some. */
  onAttach: (files: File[]) => void;
  onSend: (text: string) => void;
  onStop: () => void;
  onCompact?: () => void;
}

const TALLEST = 240;

/**
 * Where one points with a finger, the keyboard is on the screen too: it covers half of it, and has no Shift for a new line.
 * Who points with nothing has a keyboard.
 */
const isTouched = () => window.matchMedia('(pointer: coarse)').matches;

export function Composer(props: Props) {
  const { conversation, gauge, running, stopping, compacting, files = 0, onAttach, onSend, onStop, onCompact } = props;
  const { t } = useWords();
  const text = useDraft(conversation);
  const setText = (written: string) => keepDraft(conversation, written);
  const field = useRef<HTMLTextAreaElement>(null);
  useGivenFiles(onAttach);

  useEffect(() => {
    if (!isTouched()) field.current?.focus();
  }, []);

  // The button that stops a reply, and the one that asks for it again, go with it: who pressed them goes on here.
  useEffect(() => {
    const held = document.activeElement;
    const isLost = !held || held === document.body || held.matches(':disabled');
    if (isLost && !isTouched()) field.current?.focus();
  }, [running]);

  useEffect(() => {
    const area = field.current;
    if (!area) return;
    // Its box keeps its height meanwhile: otherwise the history would get room for an instant, and lose its place.
    const box = area.parentElement!;
    box.style.height = `${box.offsetHeight}px`;
    area.style.height = 'auto';
    area.style.height = `${Math.min(area.scrollHeight, TALLEST)}px`;
    box.style.height = '';
  }, [text]);

  const send = (event?: FormEvent) => {
    event?.preventDefault();
    if (!text.trim() || running) return;
    setText('');
    onSend(text);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // A key that belongs to a word being composed; Safari shows this for the last key only by its code.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key === 'Enter' && !event.shiftKey && (!isTouched() || event.ctrlKey || event.metaKey)) send(event);
    if (event.key === 'Escape' && running) onStop();
  };

  return (
    <form
      onSubmit={send}
      className="rounded-2xl border border-line bg-surface shadow-sm focus-within:border-accent"
      aria-label={t('composer')}
    >
      <div className="flex items-end gap-1.5 p-2">
        <Button
          look="quiet"
          square
          className="relative size-9 rounded-xl"
          aria-label={files ? t('files_attached', { count: files }) : t('attach_files')}
          aria-haspopup="dialog"
          onClick={() => onAttach([])}
        >
          <Paperclip className="size-4.5" aria-hidden />
          {files > 0 && (
            <span
              className="absolute -top-0.5 -right-0.5 min-w-4 rounded-full bg-accent px-1 text-center text-[0.625rem] leading-4 font-semibold text-accent-ink tabular-nums"
              aria-hidden
            >
              {files}
            </span>
          )}
        </Button>
        <textarea
          ref={field}
          id="message"
          rows={1}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          placeholder={t('write')}
          aria-label={t('message')}
          className="max-h-60 min-h-9 min-w-0 flex-1 resize-none bg-transparent px-2 py-1.5 placeholder:text-soft focus:outline-none"
        />
        {running ? (
          <Button square look="primary" className="size-9 rounded-xl" aria-label={t('stop')} disabled={stopping} onClick={onStop}>
            {stopping ? <Spinner /> : <Square className="size-3.5 fill-current" aria-hidden />}
          </Button>
        ) : (
          <Button
            square
            look="primary"
            type="submit"
            className="size-9 rounded-xl"
            aria-label={t('send')}
            disabled={!text.trim()}
          >
            <ArrowUp className="size-4.5" aria-hidden />
          </Button>
        )}
      </div>
      {gauge && (
        <div className="flex items-center gap-2 border-t border-line px-2 py-1.5">
          <GaugeMeter gauge={gauge} />
          <Button look="quiet" className="h-7 px-2" title={t('compact')} disabled={compacting || running} onClick={onCompact}>
            {compacting ? <Spinner /> : <FoldVertical className="size-4" aria-hidden />}
            <span className="max-sm:sr-only">{t('compact')}</span>
          </Button>
        </div>
      )}
    </form>
  );
}
