import type { components } from "../gen/api.ts";

export type Problem = components["schemas"]["Problem"];

/** A failed request: the API's problem, or a failure to reach the API. */
export class ApiError extends Error {
  /** 0 if there was no response. */
  readonly status: number;
  readonly problem: Partial<Problem>;
  readonly requestId: string | undefined;
  readonly request: string;

  constructor(request: string, status: number, problem: Partial<Problem>, requestId: string | undefined) {
    super(problem.detail ?? problem.title ?? "The platform did not respond.");
    this.name = "ApiError";
    this.request = request;
    this.status = status;
    this.problem = problem;
    this.requestId = requestId;
  }
}

/** Returns the error of a response that is not successful. */
export async function errorOf(request: string, response: Response): Promise<ApiError> {
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  const problem = isJson ? ((await response.json().catch(() => ({}))) as Partial<Problem>) : {};
  return new ApiError(request, response.status, problem, response.headers.get("x-request-id") ?? problem.trace_id);
}

const ADVICE: Readonly<Record<number, string>> = {
  0: "Check the connection to the platform. The page retries by itself.",
  400: "Change the input and try again.",
  401: "Sign in again.",
  403: "Ask an owner or admin of the team for this permission, or switch to another team.",
  404: "Check the address and the active team. Resources of other teams are not visible.",
  413: "Send less data.",
  429: "Wait a moment, then try again.",
};

const FIRST_SERVER_ERROR = 500;

/** Returns what the reader can do about an error. Undefined if the message of the API states it. */
export function adviceFor(error: unknown): string | undefined {
  if (!(error instanceof ApiError)) return "Reload the page. If it fails again, report it with the text above.";
  return error.status < FIRST_SERVER_ERROR
    ? ADVICE[error.status]
    : "Try again. If it fails again, give the request id to the operator of the platform.";
}
