'use client';

import { type CSSProperties, memo, type ReactNode, useDeferredValue, useId, useMemo, useRef, useState } from 'react';
import { Streamdown } from 'streamdown';
import { useWords } from '@/i18n/provider';
import { useOpener } from '@/state/opener';
import { Boundary } from '@/ui/boundary';
import { Button } from '@/ui/button';
import { CopyButton } from '@/ui/copy-button';
import { isHeavy, longTable } from './blocks';
import { linked, segmentOf } from './markers';

/** A longer text is shown as it is written until it is set: React does that in small steps, so that the page answers meanwhile. */
const LONG = 20_000;

interface Props {
  text: string;
  running?: boolean;
}

/** Browsers need many seconds to set a text of a megabyte. */
const MOST = 200_000;

/** Where a text that is too long is cut: after a line or a word. */
function cutOf(text: string): number {
  const near = text.slice(0, MOST);
  return Math.max(near.lastIndexOf('\n'), near.lastIndexOf(' ')) + 1 || MOST;
}

/** Markdown that may end anywhere. Of a very long text or table only the beginning is shown, until more is asked for. */
export const Markdown = memo(function Markdown({ text, running = false }: Props) {
  const { t, number } = useWords();
  const [whole, setWhole] = useState(false);
  // A reply that is being written is set as it grows.
  if (whole || running || text.length <= MOST) return <Tables text={text} running={running} />;
  return (
    <>
      <Tables text={text.slice(0, cutOf(text))} running={running} />
      <p className="my-2">
        <Button onClick={() => setWhole(true)}>{t('show_whole', { count: number(text.length) })}</Button>
      </p>
    </>
  );
});

function Tables({ text, running }: Props) {
  const { t } = useWords();
  const [whole, setWhole] = useState(false);
  const table = useMemo(() => (whole ? null : longTable(text)), [whole, text]);
  if (!table) return <Blocks text={text} running={running} />;
  return (
    <>
      <Blocks text={text.slice(0, table.cut)} running={false} />
      <p className="my-2">
        <Button onClick={() => setWhole(true)}>{t('show_rows', { count: table.rows })}</Button>
      </p>
      {table.end < text.length && <Tables text={text.slice(table.end)} running={running} />}
    </>
  );
}

/**
 * Pictures from elsewhere are not loaded, since the page's policy forbids it.
 *
 * What cannot be set, since it is nested too deep or heavy, is shown as it is written: one message must not close a whole thread.
 */
function Blocks({ text, running }: Props) {
  const { t } = useWords();
  const isSet = useDeferredValue(true, running || text.length < LONG);
  const clobberPrefix = useId();
  const written = <p className="whitespace-pre-wrap">{text}</p>;
  if (!isSet || isHeavy(text)) return written;
  return (
    <Boundary instead={written}>
      <Streamdown
        className="prose-reply"
        parseIncompleteMarkdown={running}
        controls={false}
        components={COMPONENTS}
        // The footnotes of two replies have the same numbers.
        remarkRehypeOptions={
          text.includes('[^') ? { clobberPrefix, footnoteLabel: t('footnotes'), footnoteBackLabel: t('footnote_back') } : undefined
        }
      >
        {linked(text)}
      </Streamdown>
    </Boundary>
  );
}

interface LinkProps {
  href?: string;
  id?: string;
  'aria-label'?: string;
  children?: ReactNode;
}

function Link({ href, id, 'aria-label': label, children }: LinkProps) {
  const opener = useOpener();
  const segment = segmentOf(href);
  if (segment) {
    return (
      <button type="button" className="text-accent underline underline-offset-2" onClick={() => opener.segment(segment)}>
        {children}
      </button>
    );
  }
  // A footnote is in the same reply.
  const isHere = href?.startsWith('#');
  return (
    <a
      id={id}
      href={href}
      aria-label={label}
      target={isHere ? undefined : '_blank'}
      rel="noreferrer"
      className="text-accent underline underline-offset-2"
    >
      {children}
    </a>
  );
}

interface CellProps {
  children?: ReactNode;
  style?: CSSProperties;
}

function Code({ children }: { children?: ReactNode }) {
  const frame = useRef<HTMLPreElement>(null);
  return (
    <div className="group/code relative">
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls is reached by keyboard */}
      <pre
        ref={frame}
        tabIndex={0}
        className="overflow-x-auto rounded-xl border border-line bg-raised p-3 font-mono text-[0.8125rem] [&>code]:p-0 [&>code]:text-[length:inherit]"
      >
        {children}
      </pre>
      <CopyButton
        className="absolute end-1 top-1 bg-raised opacity-0 group-hover/code:opacity-100 focus-visible:opacity-100 pointer-coarse:opacity-100 print:hidden"
        text={() => frame.current?.textContent ?? ''}
      />
    </div>
  );
}

const COMPONENTS = {
  // Its columns begin at the side where its text begins.
  table: ({ children }: { children?: ReactNode }) => (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls is reached by keyboard
    <div tabIndex={0} className="my-3 overflow-x-auto rounded-xl border border-line">
      <table dir="auto" className="w-full border-collapse divide-y divide-line text-sm">
        {children}
      </table>
    </div>
  ),
  th: ({ children, style }: CellProps) => (
    <th style={style} className="px-3 py-2 font-semibold">
      <span className="[unicode-bidi:plaintext]">{children}</span>
    </th>
  ),
  td: ({ children, style }: CellProps) => (
    <td style={style} className="px-3 py-2 align-top">
      <span className="[unicode-bidi:plaintext]">{children}</span>
    </td>
  ),
  // Their signs and indents stand at the side where their text begins.
  ul: ({ children }: { children?: ReactNode }) => (
    <ul dir="auto" className="list-inside list-disc whitespace-normal [li_&]:ps-6">
      {children}
    </ul>
  ),
  ol: ({ children, start }: { children?: ReactNode; start?: number }) => (
    <ol dir="auto" start={start} className="list-inside list-decimal whitespace-normal [li_&]:ps-6">
      {children}
    </ol>
  ),
  blockquote: ({ children }: { children?: ReactNode }) => (
    <blockquote dir="auto" className="my-4 border-s-4 border-muted-foreground/30 ps-4 text-muted-foreground italic">
      {children}
    </blockquote>
  ),
  a: Link,
  // The box of a task list is shown as a sign, since nobody can tick it.
  input: ({ checked }: { checked?: boolean }) => (checked ? '☑ ' : '☐ '),
  img: ({ alt }: { alt?: string }) => <span className="text-soft">[{alt || '…'}]</span>,
  pre: Code,
  code: ({ children, className }: { children?: ReactNode; className?: string }) =>
    className ? (
      <code className="font-mono">{children}</code>
    ) : (
      <code className="rounded bg-raised px-1 py-0.5 font-mono text-[0.85em]">{children}</code>
    ),
};
