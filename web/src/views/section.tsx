import type { ReactNode } from 'react';

/** A part of a view under a heading. */
export function Section({ title, what, children }: { title: string; what?: string; children: ReactNode }) {
  return (
    <section className="rounded-2xl border border-line bg-surface p-4">
      <h2 className="text-base font-semibold">{title}</h2>
      {what && <p className="mt-0.5 text-sm text-soft">{what}</p>}
      <div className="mt-3">{children}</div>
    </section>
  );
}
