/** A text as a search compares it: `strasse` finds `Straße`. */
export const plain = (text: string): string =>
  text.toLowerCase().normalize('NFD').replace(/\p{Mn}/gu, '').replaceAll('ß', 'ss');
