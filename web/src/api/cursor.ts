/**
 * The cursor at which a list ordered by numbers (messages, states, anchors) continues: any number, not only a page's
 * end. The service writes its cursors this way; a browser test opens an original in the middle of a history by one.
 */
export function cursorAt(...key: (number | string)[]): string {
  return btoa(JSON.stringify(key)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}
