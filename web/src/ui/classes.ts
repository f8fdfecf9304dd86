/** Joins the class names that are set. */
export function classes(...given: (string | false | null | undefined)[]): string {
  return given.filter(Boolean).join(' ');
}
