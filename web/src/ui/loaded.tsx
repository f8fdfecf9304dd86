'use client';

import { ChevronDown } from 'lucide-react';
import { type DependencyList, type ReactNode, useCallback, useEffect, useState } from 'react';
import { ApiError } from '@/api/client';
import type { Listing } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { Button } from './button';
import { useErrorWords } from './error-words';
import { Notice } from './notice';
import { Spinner } from './spinner';

/** A service that does not answer is asked again after so many milliseconds. */
const PAUSE = 4_000;

export const isUnreachable = (error: unknown): boolean => error instanceof ApiError && error.code === 'unreachable';

export interface Loaded<T> {
  value: T | undefined;
  error: unknown;
  loading: boolean;
  reload: () => void;
}

/**
 * The result of a request, loaded again when something it depends on changes, and until the service answers; the last
 * value stays meanwhile.
 */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, depends: DependencyList): Loaded<T> {
  const [state, setState] = useState<{ value?: T; error?: unknown; loading: boolean }>({ loading: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    load(control.signal).then(
      (value) => !control.signal.aborted && setState({ value, loading: false }),
      (error) => !control.signal.aborted && setState((before) => ({ ...before, error, loading: false })),
    );
    return () => control.abort();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `load` is what `depends` say
  }, [...depends, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  useRepeated(state.error, reload);
  return { value: state.value, error: state.error, loading: state.loading, reload };
}

/** Repeats what failed because the service did not answer. */
export function useRepeated(error: unknown, repeat: () => void): void {
  useEffect(() => {
    if (!isUnreachable(error)) return;
    const timer = setTimeout(repeat, PAUSE);
    return () => clearTimeout(timer);
  }, [error, repeat]);
}

/** Shows the value, or that it is loading, or why it failed. */
export function Shown<T>({ of, children }: { of: Loaded<T>; children: (value: T) => ReactNode }) {
  const failure = Boolean(of.error) && <Failure error={of.error} onRetry={of.reload} />;
  if (of.value !== undefined) {
    return (
      <>
        {failure}
        {children(of.value)}
      </>
    );
  }
  return failure || <Waiting />;
}

export interface Further<T> {
  items: T[];
  next: string | null;
  error: unknown;
  busy: boolean;
  more: () => void;
}

/** A list that begins with its first page, and goes on when it is asked to. */
export function useFurther<T>(first: Listing<T> | undefined, load: (after: string) => Promise<Listing<T>>): Further<T> {
  const [read, setRead] = useState<Omit<Further<T>, 'more'> & { of?: Listing<T> }>({ items: [], next: null, error: null, busy: false });
  const begun = { of: first, items: first?.data ?? [], next: first?.next_cursor ?? null, error: null, busy: false };
  const held = read.of === first ? read : begun;
  const more = async () => {
    if (!held.next || held.busy) return;
    const add = (change: Partial<typeof read>) => setRead((now) => (now.of === first ? { ...now, busy: false, ...change } : now));
    setRead({ ...held, busy: true, error: null });
    try {
      const page = await load(held.next);
      add({ items: [...held.items, ...page.data], next: page.next_cursor ?? null });
    } catch (error) {
      add({ error });
    }
  };
  return { ...held, more: () => void more() };
}

/** The button for the next page of a list, and why that page did not come. */
export function More({ of }: { of: Further<unknown> }) {
  const { t } = useWords();
  if (!of.next) return null;
  return (
    <div className="mt-2 space-y-2">
      {Boolean(of.error) && <Failure error={of.error} />}
      <Button onClick={of.more} disabled={of.busy}>
        {of.busy ? <Spinner /> : <ChevronDown className="size-4" aria-hidden />}
        {t('more_of_it')}
      </Button>
    </div>
  );
}

export function Waiting() {
  const { t } = useWords();
  return (
    <div className="flex justify-center p-10 text-soft" role="status">
      <Spinner className="size-5" />
      <span className="sr-only">{t('loading')}</span>
    </div>
  );
}

export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const words = useErrorWords();
  const { t } = useWords();
  const isGone = error instanceof ApiError && error.status === 404;
  return (
    <Notice tone="bad">
      <div className="flex flex-wrap items-center gap-2">
        <span className="min-w-0 flex-1">{words(error)}</span>
        {onRetry && !isGone && (
          <Button onClick={onRetry} className="text-ink">
            {t('again')}
          </Button>
        )}
      </div>
    </Notice>
  );
}
