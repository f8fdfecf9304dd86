/** Texts by key, with places in braces and plural forms as the CLDR chooses them: the form of the service's catalogues. */
import type english from './texts/en.json';

export type Key = keyof typeof english;
export type Texts = Record<string, string | Record<string, string>>;
export type Given = Record<string, string | number>;

export const LANGUAGE_NAMES = { en: 'English', ru: 'Русский' } as const;
export type Language = keyof typeof LANGUAGE_NAMES;
export const LANGUAGES = Object.keys(LANGUAGE_NAMES) as Language[];

export interface Translator {
  language: Language;
  /** A text of the page. `count` chooses the plural form; numbers are in the language's notation. */
  t: (key: Key, given?: Given) => string;
  /** The service's name for one of its words (`trigger.manual`); an unknown word is shown unchanged. */
  word: (section: string, word: string) => string;
  number: (value: number, options?: Intl.NumberFormatOptions) => string;
  percent: (share: number) => string;
  time: (iso: string) => string;
  /** The day; of another year than this one also the year. */
  date: (iso: string) => string;
  /** The time, and on another day than today also the date. */
  moment: (iso: string) => string;
  seconds: (milliseconds: number) => string;
}

export function translator(language: Language, texts: Texts, service: Texts): Translator {
  const plurals = new Intl.PluralRules(language);
  const number = (value: number, options?: Intl.NumberFormatOptions) =>
    new Intl.NumberFormat(language === 'en' ? 'en-GB' : language, options).format(value);
  const locale = language === 'en' ? 'en-GB' : language;

  const time = (iso: string) => new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' }).format(new Date(iso));
  const date = (iso?: string) => {
    const [day, now] = [iso ? new Date(iso) : new Date(), new Date()];
    const year = day.getFullYear() === now.getFullYear() ? undefined : 'numeric';
    return new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short', year }).format(day);
  };

  const written = (value: string | number) => (typeof value === 'number' ? number(value) : value);
  const filled = (text: string, given: Given) =>
    text.replace(/\{(\w{1,40})\}/g, (place, name: string) => (name in given ? written(given[name]!) : place));

  return {
    language,
    t(key, given = {}) {
      const found = texts[key] ?? key;
      if (typeof found === 'string') return filled(found, given);
      const form = plurals.select(Number(given.count ?? 0));
      return filled(found[form] ?? found.other ?? key, given);
    },
    word(section, word) {
      const found = service[`${section}.${word}`];
      return typeof found === 'string' ? found : word.replaceAll('_', ' ');
    },
    number,
    percent: (share) => number(share, { style: 'percent', maximumFractionDigits: 0 }),
    time,
    date,
    moment: (iso) => (date(iso) === date() ? time(iso) : `${date(iso)}, ${time(iso)}`),
    seconds: (milliseconds) =>
      number(milliseconds / 1000, milliseconds < 10_000 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 0 }),
  };
}
