/** Class names that are there. */
export function classes(...given: (string | false | null | undefined)[]): string {
  return given.filter(Boolean).join(' ');
}
