/** Everything that can go wrong: one class per kind of problem, with all that the service said about it. */

/** The base of all errors that this client throws itself. */
export class ThroughlineError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The service could not be reached, or did not answer in time, despite all tries. */
export class ConnectionFailedError extends ThroughlineError {}

/** The members of a problem (RFC 9457); some codes have further ones (`message_id`, `minimum` …). */
export interface ProblemMembers {
  status?: number;
  code?: string;
  detail?: string;
  retryable?: boolean;
  request_id?: string;
  retry_after?: number;
  errors?: { field: string; message: string }[];
  [member: string]: unknown;
}

/** The service refused a request, or failed. */
export class ApiError extends ThroughlineError {
  /** The code is stable, so that programs can depend on it. */
  readonly code: string;
  readonly detail: string;
  readonly retryable: boolean;
  /** Whether a proxy says that it got no answer of the service; a problem of the service is none. */
  readonly isOfProxy: boolean;
  readonly requestId: string | undefined;
  /** For invalid input, the `field` and `message` of each error. */
  readonly errors: { field: string; message: string }[];

  /** The milliseconds before the next try, if the service stated them. */
  readonly retryAfter: number | undefined;

  constructor(
    readonly status: number,
    readonly problem: ProblemMembers,
    retryAfter?: number,
  ) {
    const code = String(problem.code ?? `http_${status}`);
    const detail = textOf(problem.detail);
    const errors = fieldErrorsIn(problem.errors);
    const fields = errors.filter((one) => !detail.includes(one.message)).map((one) => `${one.field}: ${one.message}`);
    super([`${status} ${code}`, detail, fields.join("; ")].filter(Boolean).join(": "));
    this.code = code;
    this.detail = detail;
    this.errors = errors;
    this.isOfProxy = OF_PROXIES.has(status) && problem.code === undefined;
    this.retryable = problem.retryable ?? (RETRIED.has(status) || this.isOfProxy);
    this.requestId = problem.request_id;
    this.retryAfter = retryAfter ?? (problem.retry_after == null ? undefined : 1000 * problem.retry_after);
  }
}

// A problem may be another API's, whose members have any form.

function textOf(detail: unknown): string {
  return typeof detail === "string" ? detail : detail == null ? "" : JSON.stringify(detail);
}

function fieldErrorsIn(errors: unknown): { field: string; message: string }[] {
  return Array.isArray(errors) ? errors.filter((one) => typeof one === "object" && one !== null) : [];
}

/** 400: unreadable. */
export class BadRequestError extends ApiError {}
/** 401: no valid key. */
export class UnauthenticatedError extends ApiError {}
/** 403: the key lacks the scope. */
export class ForbiddenError extends ApiError {}
/** 404: unknown, or another tenant's. */
export class NotFoundError extends ApiError {}
/** 409: the request conflicts with something that is going on; `code` says with what. */
export class ConflictError extends ApiError {}
/** 412: the state version is not the one that was named. */
export class PreconditionFailedError extends ApiError {}
/** 413: larger than accepted. */
export class TooLargeError extends ApiError {}
/** 422: against the contract; `errors` names the fields. */
export class InvalidInputError extends ApiError {}
/** 429: too many requests for now. */
export class RateLimitedError extends ApiError {}
/** 502: the model failed; in a turn `problem.message_id` is the stored message. */
export class ModelFailedError extends ApiError {}
/** 503: something that the service needs is away. */
export class UnavailableError extends ApiError {}
/** Any other 5xx. */
export class ServerError extends ApiError {}

export const RETRIED: ReadonlySet<number> = new Set([429, 503]);
/** By these statuses proxies say that a service is away, as while it is restarted, or late. */
const OF_PROXIES: ReadonlySet<number> = new Set([502, 504]);
const CLASSES: Readonly<Record<number, typeof ApiError>> = {
  400: BadRequestError,
  401: UnauthenticatedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  412: PreconditionFailedError,
  413: TooLargeError,
  422: InvalidInputError,
  429: RateLimitedError,
  502: ModelFailedError,
  503: UnavailableError,
};

/** The error for a problem. */
export function errorOf(status: number, problem: ProblemMembers, retryAfter?: number): ApiError {
  const kind = CLASSES[status] ?? (status >= 500 ? ServerError : ApiError);
  return new kind(status, problem, retryAfter);
}

/** The problem in a body; any other body (a proxy's page, another API's error) becomes its detail. */
export function problemIn(body: string): ProblemMembers {
  try {
    const found: unknown = JSON.parse(body);
    if (typeof found === "object" && found !== null && ("code" in found || "detail" in found))
      return found as ProblemMembers;
  } catch {
    // not JSON
  }
  return { detail: body.slice(0, 300) };
}
