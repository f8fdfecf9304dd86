/** The service's shapes by their names in openapi.json. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type Anchor = Schemas['Anchor'];
export type AnchorStatus = Anchor['status'];
export type AssembledContext = Schemas['AssembledContext'];
export type AttachedFile = Schemas['File'];
export type Compaction = Schemas['Compaction'];
export type Conversation = Schemas['Conversation'];
export type ConversationStats = Schemas['ConversationStats'];
export type ConversationSummary = Schemas['ConversationSummary'];
export type Event = Schemas['Event'];
export type Gauge = Schemas['Gauge'];
export type Message = Schemas['Message'];
export type Preset = Schemas['Preset'];
export type Problem = Schemas['Problem'];
export type Provenance = Schemas['Provenance'];
export type Repair = Schemas['Repair'];
export type SearchHit = Schemas['SearchHit'];
export type Segment = Schemas['Segment'];
export type StateDifference = Schemas['StateDifference'];
export type StateVersion = Schemas['StateVersion'];

export interface Listing<T> {
  data: T[];
  next_cursor?: string | null;
  has_more?: boolean;
}
