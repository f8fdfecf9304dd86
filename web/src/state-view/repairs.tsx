'use client';

import type { Repair } from '@/api/types';
import { useWords } from '@/i18n/provider';

/** The changes that code made to a model's summary, before and after. */
export function Repairs({ repairs }: { repairs: Repair[] }) {
  const { t, word } = useWords();
  if (!repairs.length) return null;
  return (
    <section className="rounded-xl bg-warn-wash px-3 py-2.5 text-sm">
      <h3 className="font-medium text-warn">{t('repairs', { count: repairs.length })}</h3>
      <ul className="mt-1.5 space-y-2">
        {repairs.map((repair, place) => (
          <li key={place}>
            <p className="text-xs font-medium text-warn">
              {word('state', repair.field)} · {word('repair', repair.reason)}
            </p>
            {repair.before && (
              <p>
                <span className="sr-only">{t('before')}: </span>
                <del className="opacity-80">{repair.before}</del>
              </p>
            )}
            {repair.after && (
              <p>
                <span className="sr-only">{t('after')}: </span>
                <ins className="no-underline">{repair.after}</ins>
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
