import type { JsonObject } from "@millwright/json";
import type { RunEvent } from "./run-events.ts";

type Coverage = "known" | "partial" | "unavailable";

/** The usage that a third-party harness has counted itself in a run so far. */
export type HarnessUsage = {
  readonly harness: string;
  readonly captureSequence: number;
  readonly capturedAt: Date;
  readonly executionId: number;
  readonly tokenStatus: Coverage;
  readonly toolStatus: Coverage;
  /** Counters under the harness's own names. A value that the harness did not count is absent. */
  readonly counters: JsonObject;
  readonly toolCalls: Readonly<Record<string, number>>;
  /**
   * Sum of the disjoint counters, so that each token is counted once. Absent: the harness did not count both input and
   * output tokens.
   */
  readonly reportedTokens?: number;
};

/**
 * The published name and counters of a harness. `disjoint`: the counters that sum to all tokens; the other counters are
 * parts of these.
 */
type Published = { readonly name: string; readonly counters: readonly string[]; readonly disjoint: readonly string[] };

/** The harnesses whose usage is published. */
const PUBLISHED: Readonly<Record<string, Published>> = {
  claude: {
    name: "CLAUDE_CODE",
    counters: ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"],
    disjoint: ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"],
  },
  codex: {
    name: "CODEX",
    counters: [
      "input_tokens",
      "cached_input_tokens",
      "cache_write_input_tokens",
      "output_tokens",
      "reasoning_output_tokens",
      "total_tokens",
    ],
    disjoint: ["input_tokens", "output_tokens"],
  },
};
/** The parts of the tokens that Claude Code writes to its cache. */
const CACHE_CREATION = ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"];

/**
 * Returns the usage in a `harness_usage` event. Returns undefined if the event has no token counters, or its harness
 * has no published usage. The payload comes from a worker, so its shape is not trusted.
 */
export function harnessUsageOf({
  seq,
  occurredAt,
  executionId,
  payload,
}: Pick<RunEvent, "seq" | "occurredAt" | "executionId" | "payload">): HarnessUsage | undefined {
  const harness = payload["harness"];
  const published = typeof harness === "string" && Object.hasOwn(PUBLISHED, harness) ? PUBLISHED[harness] : undefined;
  if (!published || executionId === undefined) return undefined;
  const counted = objectIn(payload["counted"]);
  const creation = harness === "claude" ? counts(objectIn(counted["cache_creation"]), CACHE_CREATION) : {};
  const counters: JsonObject = {
    ...counts(counted, published.counters),
    ...(Object.keys(creation).length > 0 ? { cache_creation: creation } : {}),
  };
  if (Object.keys(counters).length === 0) return undefined;
  const calls = objectIn(payload["tool_calls"]);
  const reportedTokens = totalOf(counts(counted, published.disjoint));
  return {
    ...{ harness: published.name, captureSequence: seq, capturedAt: occurredAt, executionId, counters },
    tokenStatus: payload["missed_turns"] === 0 ? "known" : "partial",
    toolStatus: (payload["lost_turns"] ?? 0) === 0 ? "known" : "partial",
    toolCalls: counts(calls, Object.keys(calls)),
    reportedTokens,
  };
}

const totalOf = (counters: Record<string, number>): number | undefined =>
  counters["input_tokens"] === undefined || counters["output_tokens"] === undefined
    ? undefined
    : Object.values(counters).reduce((sum, count) => sum + count, 0);

const counts = (object: JsonObject, names: readonly string[]): Record<string, number> =>
  Object.fromEntries(
    names.flatMap((name) =>
      Object.hasOwn(object, name) && Number.isSafeInteger(object[name]) && (object[name] as number) >= 0
        ? [[name, object[name] as number]]
        : [],
    ),
  );

const objectIn = (value: unknown): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
