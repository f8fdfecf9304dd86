/** The bytes of a body. No more is read than its limit. */

/** The body; `null` if it has more bytes than `largest`. */
export async function bytesOf(request: Request, largest: number): Promise<Uint8Array<ArrayBuffer> | null> {
  if (Number(request.headers.get('content-length') ?? 0) > largest) return null;
  const pieces: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) break;
    size += value.length;
    if (size > largest) {
      await reader?.cancel().catch(() => undefined);
      return null;
    }
    pieces.push(value);
  }
  return Uint8Array.from(Buffer.concat(pieces));
}
