'use client';

import { File as FileIcon, FileText, Film, Image, Music, Paperclip, Trash2, type LucideIcon } from 'lucide-react';
import { type DragEvent, type FormEvent, type MouseEvent, useRef, useState } from 'react';
import { address } from '@/api/client';
import { download } from '@/api/download';
import { contentPath } from '@/api/resources';
import type { AttachedFile } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import type { Chosen, Files } from '@/state/files';
import { Button } from '@/ui/button';
import { classes } from '@/ui/classes';
import { Dialog } from '@/ui/dialog';
import { Field } from '@/ui/field';
import { Failure } from '@/ui/loaded';
import { Notice } from '@/ui/notice';
import { Spinner } from '@/ui/spinner';
import { mayRepeat, refusalOf } from './file-words';
import { sizeOf } from './sizes';

interface Props {
  files: Files;
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

/** The files attached to the conversation, which can be added, saved and removed. */
export function FilesDialog({ files, open, onOpenChange }: Props) {
  const { t } = useWords();
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setIsOver] = useState(false);
  const { attached, chosen, loaded } = files;
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setIsOver(false);
    files.choose(event.dataTransfer.files);
  };
  const over = (event: DragEvent) => {
    event.preventDefault();
    setIsOver(true);
  };
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={t('files')} description={t('files_what')}>
      {Boolean(loaded.error) && <Failure error={loaded.error} onRetry={loaded.reload} />}
      <div
        onDrop={drop}
        onDragOver={over}
        onDragLeave={() => setIsOver(false)}
        className={classes(
          'mb-2 flex flex-col items-center gap-2 rounded-xl border border-dashed px-4 py-5 text-center',
          isOver ? 'border-accent bg-accent-wash' : 'border-line',
        )}
      >
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label={t('choose_files')}
          onChange={(event) => {
            files.choose(event.target.files ?? []);
            event.target.value = '';
          }}
        />
        <Button look="primary" onClick={() => input.current?.click()}>
          <Paperclip className="size-4" aria-hidden />
          {t('choose_files')}
        </Button>
        <p className="text-xs text-soft">{t('files_taken')}</p>
      </div>
      {chosen.length > 0 && (
        <ul className="mb-2 space-y-2" aria-label={t('files_chosen')}>
          {chosen.map((one) => (
            <Waiting key={one.key} one={one} files={files} />
          ))}
        </ul>
      )}
      {attached.length > 0 && (
        <ul className="divide-y divide-line" aria-label={t('files')} data-testid="files">
          {attached.map((file) => (
            <Attached key={file.id} file={file} onRemove={() => files.remove(file.id)} />
          ))}
        </ul>
      )}
    </Dialog>
  );
}

function Attached({ file, onRemove }: { file: AttachedFile; onRemove: () => Promise<void> }) {
  const { t, number } = useWords();
  const { id } = useConversation();
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const Icon = iconOf(file.media_type);
  const path = contentPath(id, file.id);
  const save = (event: MouseEvent) => {
    event.preventDefault();
    setError(null);
    download(path, {}, file.name).catch(setError);
  };
  const remove = async () => {
    setBusy(true);
    setError(null);
    try {
      await onRemove();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <li className="py-2">
      <div className="flex items-center gap-2.5">
        <Icon className="size-4 shrink-0 text-soft" aria-hidden />
        <div className="min-w-0 flex-1">
          <a href={address(path)} download={file.name} onClick={save} className="block truncate text-sm text-accent hover:underline" title={file.name}>
            {file.name}
          </a>
          <p className="text-xs text-soft tabular-nums">
            {sizeOf(file.bytes, number)} · {t('tokens', { count: file.tokens })}
          </p>
        </div>
        {asking ? (
          <>
            <Button autoFocus onClick={() => setAsking(false)}>
              {t('cancel')}
            </Button>
            <Button look="danger" disabled={busy} onClick={() => void remove()}>
              {t('remove')}
            </Button>
          </>
        ) : (
          <Button look="quiet" square aria-label={t('remove_file', { name: file.name })} onClick={() => setAsking(true)}>
            <Trash2 className="size-4" aria-hidden />
          </Button>
        )}
      </div>
      {Boolean(error) && <Failure error={error} />}
    </li>
  );
}

function Waiting({ one, files }: { one: Chosen; files: Files }) {
  const words = useWords();
  const { t, number } = words;
  const [tokens, setTokens] = useState('');
  const weigh = (event: FormEvent) => {
    event.preventDefault();
    if (Number(tokens) >= 1) files.weigh(one, Number(tokens));
  };
  const name = (
    <span className="min-w-0 flex-1 truncate text-sm" title={one.name}>
      {one.name} <span className="text-xs text-soft">{sizeOf(one.file.size, number)}</span>
    </span>
  );
  if (one.step === 'refused') {
    return (
      <li>
        <Notice tone="bad">
          <span className="font-medium">{one.name}</span>: {refusalOf(one.error, one.file.size, words)}
          <span className="mt-2 flex gap-2 text-ink">
            {mayRepeat(one.error) && <Button onClick={() => files.again(one)}>{t('again')}</Button>}
            <Button onClick={() => files.dismiss(one)}>{t('dismiss')}</Button>
          </span>
        </Notice>
      </li>
    );
  }
  if (one.step === 'asks') {
    return (
      <li className="rounded-xl border border-line p-3">
        <form onSubmit={weigh} className="space-y-2">
          <p className="flex">{name}</p>
          <Field label={t('file_tokens')} hint={t('file_tokens_what')} type="number" min={1} value={tokens} onChange={setTokens} />
          <span className="flex justify-end gap-2">
            <Button onClick={() => files.dismiss(one)}>{t('cancel')}</Button>
            <Button type="submit" look="primary" disabled={!(Number(tokens) >= 1)}>
              {t('attach')}
            </Button>
          </span>
        </form>
      </li>
    );
  }
  return (
    <li className="flex items-center gap-2.5 py-1" role="status">
      <Spinner className="size-4 shrink-0 text-soft" />
      {name}
      <span className="text-xs text-soft">{one.step === 'sent' ? t('attaching') : t('file_waits')}</span>
    </li>
  );
}

const ICONS: [RegExp, LucideIcon][] = [
  [/^image\//, Image],
  [/^audio\//, Music],
  [/^video\//, Film],
  [/^text\/|json|xml|yaml|toml|script|sql/, FileText],
];

const iconOf = (type: string): LucideIcon => ICONS.find(([form]) => form.test(type))?.[1] ?? FileIcon;
