/** A refusal in the same form as the service's. */
export function problem(status: number, code: string, detail: string, headers: Record<string, string> = {}): Response {
  const body = { type: `urn:throughline:problem:${code}`, title: detail, status, detail, code, retryable: status === 429 || status === 502 };
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store', ...headers },
  });
}
