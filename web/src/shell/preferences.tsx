'use client';

import { LogOut, Settings2 } from 'lucide-react';
import { useTheme } from 'next-themes';
import { useState } from 'react';
import { ApiError, SESSION } from '@/api/client';
import { useWords } from '@/i18n/provider';
import { LANGUAGE_NAMES, LANGUAGES } from '@/i18n/translator';
import { forgetDrafts } from '@/state/drafts';
import { onceBelow } from '@/state/panels';
import { Button } from '@/ui/button';
import { Confirm } from '@/ui/confirm';
import { Menu, MenuChoice, MenuHeading, MenuItem, MenuLine } from '@/ui/menu';
import { isLoggedIn, noteLogin } from './logged-in';

const THEMES = ['system', 'light', 'dark'] as const;

/** Language, theme, and the logout for users who logged in. */
export function Preferences() {
  const { t, language, setLanguage } = useWords();
  const { theme, setTheme } = useTheme();
  const [hasFailed, setHasFailed] = useState(false);
  const leave = async () => {
    const left = await fetch(SESSION, { method: 'DELETE', credentials: 'same-origin' }).catch(() => undefined);
    // If nobody answers, the cookie is still there, and so is the way out.
    if (!left?.ok) throw new ApiError(0, 'unreachable', 'unreachable');
    noteLogin(false);
    forgetDrafts();
    onceBelow(() => window.location.reload());
  };
  return (
    <>
      <Menu
        trigger={
          <Button look="quiet" square aria-label={t('preferences')}>
            <Settings2 className="size-4" aria-hidden />
          </Button>
        }
      >
        <MenuHeading>{t('language')}</MenuHeading>
        <MenuChoice
          value={language}
          options={LANGUAGES.map((value) => ({ value, label: LANGUAGE_NAMES[value] }))}
          onChange={setLanguage}
        />
        <MenuLine />
        <MenuHeading>{t('theme')}</MenuHeading>
        <MenuChoice
          value={(theme ?? 'system') as (typeof THEMES)[number]}
          options={THEMES.map((value) => ({ value, label: t(`theme_${value}`) }))}
          onChange={setTheme}
        />
        {isLoggedIn() && (
          <>
            <MenuLine />
            <MenuItem icon={<LogOut className="size-4" aria-hidden />} onSelect={() => void leave().catch(() => setHasFailed(true))}>
              {t('logout')}
            </MenuItem>
          </>
        )}
      </Menu>
      <Confirm
        open={hasFailed}
        onOpenChange={setHasFailed}
        title={t('logout_failed')}
        what={t('logout_failed_what')}
        action={t('again')}
        look="primary"
        onConfirm={leave}
      />
    </>
  );
}
