'use client';

import { type FormEvent, useState } from 'react';
import { IS_EXPORT, SESSION } from '@/api/client';
import { useWords } from '@/i18n/provider';
import type { Key } from '@/i18n/translator';
import { Button } from '@/ui/button';
import { Field } from '@/ui/field';
import { Notice } from '@/ui/notice';
import { noteLogin } from './logged-in';
import { Mark } from './mark';
import { Preferences } from './preferences';

/** Why a login failed; whoever is told that their key is wrong looks for another one. */
function refusalOf(status: number): Key {
  if (status === 429) return 'login_slow';
  if (status >= 500) return 'login_failed';
  return IS_EXPORT ? 'key_refused' : 'password_refused';
}

/** Asks for the service's key, or for the name and password of a server in front of it. */
export function Login({ onDone }: { onDone: () => void }) {
  const { t } = useWords();
  const [name, setName] = useState('');
  const [secret, setSecret] = useState('');
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);

  const enter = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setRefused(null);
    try {
      const response = await fetch(SESSION, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(IS_EXPORT ? { key: secret.trim() } : { name: name.trim(), password: secret }),
        credentials: 'same-origin',
      });
      if (response.ok) {
        noteLogin(true);
        onDone();
      } else setRefused(t(refusalOf(response.status)));
    } catch {
      setRefused(t('unreachable'));
    } finally {
      setBusy(false);
    }
  };

  return (
    <main className="flex min-h-dvh items-center justify-center p-4">
      <form onSubmit={enter} className="w-full max-w-sm space-y-4 rounded-2xl border border-line bg-surface p-6 shadow-sm">
        <div className="flex items-center gap-2.5">
          <Mark className="size-7 text-accent" />
          <h1 className="flex-1 text-lg font-semibold">Throughline</h1>
          <Preferences />
        </div>
        <p className="text-sm text-soft">{t(IS_EXPORT ? 'login_key' : 'login_password')}</p>
        {!IS_EXPORT && <Field label={t('login_name')} value={name} onChange={setName} autoComplete="username" maxLength={100} autoFocus />}
        <Field
          label={t(IS_EXPORT ? 'key' : 'password')}
          type="password"
          value={secret}
          onChange={setSecret}
          autoComplete="current-password"
          autoFocus={IS_EXPORT}
        />
        {refused && <Notice tone="bad">{refused}</Notice>}
        <Button type="submit" look="primary" className="w-full" disabled={busy || !secret.trim()}>
          {t('login')}
        </Button>
      </form>
    </main>
  );
}
