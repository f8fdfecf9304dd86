'use client';

import { useEffect, useState } from 'react';
import { onLoginWanted } from '@/api/client';
import { LanguageProvider } from '@/i18n/provider';
import { NavigationProvider } from '@/state/navigation';
import { part } from '@/state/part';
import { Frame } from './frame';
import { noteLogin } from './logged-in';
import { Skeleton } from './skeleton';

const Login = part(() => import('./login').then((found) => found.Login), <Skeleton />);

export function Application() {
  return (
    <LanguageProvider waiting={<Skeleton />}>
      <NavigationProvider>
        <Entrance />
      </NavigationProvider>
    </LanguageProvider>
  );
}

/** The page, or the login if the service asks for one. */
function Entrance() {
  const [isAsked, setIsAsked] = useState(false);
  useEffect(
    () =>
      onLoginWanted(() => {
        noteLogin(false);
        setIsAsked(true);
      }),
    [],
  );
  return isAsked ? <Login onDone={() => setIsAsked(false)} /> : <Frame />;
}
