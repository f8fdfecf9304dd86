/** Replaces `marked`, which cuts Markdown into blocks: a reply is one block. */
export class Lexer {
  readonly tokens = { links: {} };

  blockTokens(text: string): { type: string; raw: string }[] {
    return [{ type: 'paragraph', raw: text }];
  }
}
