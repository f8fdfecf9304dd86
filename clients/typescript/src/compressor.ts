/** Three calls about levels of detail: make one, read one, make a context with them. */

import type { Keyed, Level, Schemas, Throughline } from "./client.js";

type Segment = Schemas["Segment"];

const NAMES: readonly Level[] = ["full", "detailed", "brief", "tags"];

/** 0 full, 1 detailed, 2 brief, 3 tags. */
export type LevelOfDetail = 0 | 1 | 2 | 3 | Level;
/** A segment, its id, or the first and last `seq` of one. */
export type Stretch = Segment | string | readonly [number, number];

/** Levels of detail of one conversation's segments, and contexts with them. */
export class ContextCompressor {
  constructor(
    private readonly client: Throughline,
    private readonly conversationId: string,
  ) {}

  /** Make a segment's level now, and return it; 0 are the originals. Throws a `RangeError` for an unknown level. */
  async compress(segment: Stretch, level: LevelOfDetail, options: Keyed = {}): Promise<Segment> {
    const made = await this.client.makeLevel(
      this.conversationId,
      { ...placeOf(segment), level: nameOf(level) },
      options,
    );
    return made.next_cursor == null ? made : this.expand(made.segment_id, level, options);
  }

  /** A segment at a level, whole, whatever its size; 0 are the originals. Throws a `RangeError` likewise. */
  async expand(segmentId: string, level: LevelOfDetail = 0, options: Keyed = {}): Promise<Segment> {
    const page = (after?: string) =>
      this.client.segment(this.conversationId, segmentId, { level: nameOf(level), after }, options);
    let whole = await page();
    while (whole.next_cursor != null) whole = joined(whole, await page(whole.next_cursor));
    return whole;
  }

  /** A conversation's context within a budget. */
  assembleContext(
    conversationId: string,
    tokenBudget?: number,
    request: Schemas["ContextRequest"] = {},
    options: Keyed = {},
  ) {
    return this.client.context(conversationId, { ...request, budget: tokenBudget }, options);
  }
}

/** Joins a page and the one after it. */
function joined(page: Segment, following: Segment): Segment {
  return {
    ...following,
    from_seq: page.from_seq,
    started_at: page.started_at,
    content: page.content + following.content,
    messages: [...page.messages, ...following.messages],
    token_count: page.token_count + following.token_count,
  };
}

function placeOf(segment: Stretch): Pick<Schemas["SegmentRequest"], "segment_id" | "from_seq" | "to_seq"> {
  if (typeof segment === "string") return { segment_id: segment };
  return "segment_id" in segment ? { segment_id: segment.segment_id } : { from_seq: segment[0], to_seq: segment[1] };
}

/** The service's name of a level; the service decides which names exist. */
function nameOf(level: LevelOfDetail): Level {
  const name = typeof level === "number" ? NAMES[level] : level;
  if (name === undefined) throw new RangeError(`there is no level ${level}: 0 full, 1 detailed, 2 brief, 3 tags`);
  return name;
}
