'use client';

import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react';
import { speak } from '@/api/client';
import { keep, kept } from '@/state/kept';
import { type Language, LANGUAGES, type Texts, type Translator, translator } from './translator';

interface Spoken extends Translator {
  setLanguage: (language: Language) => void;
}

const Words = createContext<Spoken | null>(null);
const STORED = 'throughline-language';
/** Texts that did not come are asked for again after so many milliseconds. */
const PAUSE = 4_000;

/** Loads the texts of one language only. */
async function load(language: Language): Promise<[Texts, Texts]> {
  const found = await Promise.all([import(`./texts/${language}.json`), import(`./service/${language}.json`)]);
  return found.map((texts: { default: Texts }) => texts.default) as [Texts, Texts];
}

function wished(): Language {
  const spoken = [kept(STORED), ...navigator.languages].map((tag) => tag?.slice(0, 2).toLowerCase());
  return LANGUAGES.find((one) => one === spoken.find((tag) => LANGUAGES.some((known) => known === tag))) ?? 'en';
}

/** Shows everything below it once its texts are loaded. */
export function LanguageProvider({ children, waiting }: { children: ReactNode; waiting: ReactNode }) {
  const [words, setWords] = useState<Translator | null>(null);

  /** The language that was chosen last, whichever texts come first. */
  const wanted = useRef<Language | null>(null);

  const show = useCallback(async (language: Language) => {
    wanted.current = language;
    while (wanted.current === language) {
      const found = await load(language).catch(() => null);
      if (!found) await new Promise((resolve) => setTimeout(resolve, PAUSE));
      if (!found || wanted.current !== language) continue;
      speak(language);
      document.documentElement.lang = language;
      return setWords(translator(language, ...found));
    }
  }, []);

  useEffect(() => {
    void show(wished());
  }, [show]);

  const spoken = useMemo<Spoken | null>(
    () =>
      words && {
        ...words,
        setLanguage: (language) => {
          keep(STORED, language);
          void show(language);
        },
      },
    [words, show],
  );
  return spoken ? <Words.Provider value={spoken}>{children}</Words.Provider> : waiting;
}

export function useWords(): Spoken {
  const words = useContext(Words);
  if (!words) throw new Error('no language');
  return words;
}
