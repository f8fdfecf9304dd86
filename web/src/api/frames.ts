/** Server-sent events as they come, over a connection that is watched. */
import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';

/**
 * The service sends something at least every 20 seconds, if only a comment. A stream that is silent for so many
 * milliseconds is dead: nobody tells a browser of a network that is gone.
 */
const SILENCE = 65_000;

/** Read the events of an answer; they end with an error if the connection is cut off or dead. */
export function framesOf(body: ReadableStream<Uint8Array>): ReadableStreamDefaultReader<EventSourceMessage> {
  return body
    .pipeThrough(watched())
    .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream())
    .getReader();
}

function watched(): TransformStream<Uint8Array, Uint8Array> {
  let timer: ReturnType<typeof setTimeout>;
  const watch = (stream: TransformStreamDefaultController<Uint8Array>) => {
    clearTimeout(timer);
    timer = setTimeout(() => stream.error(new Error('silent')), SILENCE);
  };
  return new TransformStream({
    start: watch,
    transform(bytes, stream) {
      watch(stream);
      stream.enqueue(bytes);
    },
    flush: () => clearTimeout(timer),
  });
}
