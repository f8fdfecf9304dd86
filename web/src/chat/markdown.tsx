'use client';

import { memo, type ReactNode, useDeferredValue } from 'react';
import { Streamdown } from 'streamdown';
import { useOpener } from '@/state/opener';
import { linked, segmentOf } from './markers';

/** A longer text is shown as it is written until it is set: React does that in small steps, so that the page answers meanwhile. */
const LONG = 20_000;

/** Markdown that may end anywhere. Pictures from elsewhere are not loaded, since the page's policy forbids it. */
export const Markdown = memo(function Markdown({ text, running = false }: { text: string; running?: boolean }) {
  const isSet = useDeferredValue(true, running || text.length < LONG);
  if (!isSet) return <p className="whitespace-pre-wrap">{text}</p>;
  return (
    <Streamdown className="prose-reply" parseIncompleteMarkdown={running} controls={false} components={COMPONENTS}>
      {linked(text)}
    </Streamdown>
  );
});

function Link({ href, children }: { href?: string; children?: ReactNode }) {
  const opener = useOpener();
  const segment = segmentOf(href);
  if (segment) {
    return (
      <button type="button" className="text-accent underline underline-offset-2" onClick={() => opener.segment(segment)}>
        {children}
      </button>
    );
  }
  return (
    <a href={href} target="_blank" rel="noreferrer noopener" className="text-accent underline underline-offset-2">
      {children}
    </a>
  );
}

const COMPONENTS = {
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
  pre: ({ children }: { children?: ReactNode }) => (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls is reached by keyboard
    <pre tabIndex={0} className="overflow-x-auto rounded-xl border border-line bg-raised p-3 font-mono text-[0.8125rem] [&>code]:p-0 [&>code]:text-[length:inherit]">
      {children}
    </pre>
  ),
  code: ({ children, className }: { children?: ReactNode; className?: string }) =>
    className ? (
      <code className="font-mono">{children}</code>
    ) : (
      <code className="rounded bg-raised px-1 py-0.5 font-mono text-[0.85em]">{children}</code>
    ),
};
