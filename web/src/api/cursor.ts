/**
 * Where a list that is ordered by numbers (messages, states, anchors) goes on: at any number, not only where a page
 * ended. The service writes its cursors this way; a browser test opens an original in the middle of a history by one.
 */
export function cursorAt(...key: (number | string)[]): string {
  return btoa(JSON.stringify(key)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}
