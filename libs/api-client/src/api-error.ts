/** The problem+json body of an error response (RFC 9457). */
export type Problem = {
  status: number;
  title?: string;
  detail?: string;
  error_code?: string;
  reason?: string;
  retryable?: boolean;
  diagnostics?: { path: string; line: number; column: number; code: string; message: string; severity?: string }[];
};

/** Thrown for an error response; carries the problem body. */
export class ApiError extends Error {
  readonly status: number;
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail ?? problem.title ?? `The platform responded with status ${problem.status}.`);
    this.name = "ApiError";
    this.status = problem.status;
    this.problem = problem;
  }
}
