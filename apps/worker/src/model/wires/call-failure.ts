import { refusalIn } from "@millwright/outbound";
import type { RunFailure } from "../model-provider.ts";

/**
 * Why a call returned no response. If `isTransient`, the call can be retried, and `failure` applies if it never
 * succeeds. Texts are the provider's, unmasked.
 */
export type CallFailure = {
  readonly isTransient: boolean;
  readonly summary: string;
  readonly status?: number;
  /** The prompt exceeded the context window. */ readonly isTooLong?: boolean;
  readonly retryAfterMs?: number;
  readonly failure: RunFailure;
};

/**
 * Thrown if a call ended without a complete response and without a refusal: the connection was cut, or no data arrived
 * in time.
 */
export class CallBroken extends Error {}

const SUMMARY_MAX = 500;
const RETRY_AFTER_MAX_MS = 60_000;
const TRANSIENT_STATUS = new Set([408, 409, 425, 429]);
/** Permanent refusals that the user or the operator can resolve, with codes of the public error catalog. */
const REFUSALS: Readonly<Record<number, readonly [code: string, reason: string]>> = {
  401: ["external_authentication_required", "model_key_refused"],
  402: ["insufficient_credits", "model_account"],
  403: ["external_authentication_required", "model_key_refused"],
  404: ["resource_not_found", "model_not_found"],
};

/** Matches the messages of providers about prompts that are too long. */
const TOO_LONG =
  /too long|context.{0,20}(length|window|size)|maximum (context|input|number of (input )?tokens)|exceeds? the (limit|maximum|available)/i;

/**
 * Classifies the error of a call. A failed connection and an error within a stream may be transient; a refusal is
 * classified by its status.
 */
export function callFailure(provider: string, error: unknown): CallFailure {
  const refused = refusalIn(error);
  if (refused)
    return {
      isTransient: false,
      summary: refused.message,
      failure: {
        code: "invalid_request",
        message: `The model provider ${provider} was not called: ${refused.message}`,
        retryable: false,
        reason: "internal_address_refused",
      },
    };
  const { statusCode, responseHeaders } = error as { statusCode?: unknown; responseHeaders?: Record<string, string> };
  // an error in the middle of a stream follows a successful status
  const status = typeof statusCode === "number" && statusCode >= 400 ? statusCode : undefined;
  const summary = `${status === undefined ? "" : `${status}: `}${textOf(error)}`.slice(0, SUMMARY_MAX);
  const isTransient = status === undefined || status >= 500 || TRANSIENT_STATUS.has(status);
  const retryAfter = Number(responseHeaders?.["retry-after"]);
  if (isTransient) {
    const failure = {
      code: "resource_unavailable",
      message: `The model provider ${provider} did not respond (${summary}).`,
      retryable: true,
      reason: "model_unavailable",
    };
    return {
      isTransient,
      summary,
      failure,
      status,
      retryAfterMs: retryAfter > 0 ? Math.min(retryAfter * 1_000, RETRY_AFTER_MAX_MS) : undefined,
    };
  }
  const [code, reason] = REFUSALS[status] ?? ["invalid_request", "model_refused_request"];
  const isTooLong = status === 413 || (status === 400 && TOO_LONG.test(summary));
  return {
    isTransient,
    summary,
    isTooLong,
    failure: {
      code,
      message: `The model provider ${provider} refused the call (${summary}).`,
      retryable: false,
      reason,
    },
  };
}

function textOf(error: unknown): string {
  const { message } = error as { message?: unknown };
  return typeof message === "string" && message !== "" ? message : "no reason given";
}
