/** Pure: what was served for each reply, compared with the whole history at that time. */
import type { Message } from '@/api/types';

export interface Turn {
  seq: number;
  served: number;
  full: number;
}

/**
 * @param messages the newest messages, in their order
 * @param historyTokens the tokens of all messages, including earlier ones
 */
export function servedAndFull(messages: Message[], historyTokens: number): Turn[] {
  const shown = messages.reduce((sum, message) => sum + message.token_count, 0);
  let full = Math.max(0, historyTokens - shown);
  const turns: Turn[] = [];
  for (const message of messages) {
    const served = Number(message.usage?.input_tokens);
    if (message.role === 'assistant' && served > 0) turns.push({ seq: message.seq, served, full });
    full += message.token_count;
  }
  return turns;
}
