/** A typed client of Throughline's HTTP API, for Node 20 and browsers. */

export { Throughline } from "./client.js";
export type { Asked, Keyed, Level, Listed, Matching, Options, Order, Schemas } from "./client.js";
export { ContextCompressor } from "./compressor.js";
export type { LevelOfDetail, Stretch } from "./compressor.js";
export * from "./errors.js";
export { readEvents } from "./streams.js";
export type { ChatEvent, ConversationEvent } from "./streams.js";
export type { Fetch, Retrying } from "./retrying.js";
export type { components, operations, paths } from "./schema.js";
