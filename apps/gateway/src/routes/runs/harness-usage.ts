import { z } from "zod";
import type { orchestrator } from "@millwright/contracts";
import { EXTENSION, timestamp } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";

const count = () => z.int().nullable().optional();
const Coverage = z.enum(["known", "partial", "unavailable"]);

/** The union of the counters of Claude Code and Codex. Absent: not measured. */
const Counters = z.object({
  ...{
    input_tokens: count(),
    output_tokens: count(),
    cache_read_input_tokens: count(),
    cache_creation_input_tokens: count(),
  },
  cache_creation: z.object({ ephemeral_5m_input_tokens: count(), ephemeral_1h_input_tokens: count() }).optional(),
  ...{
    cached_input_tokens: count(),
    cache_write_input_tokens: count(),
    reasoning_output_tokens: count(),
    total_tokens: count(),
  },
});

/**
 * Usage that a third-party harness reported. The published API uses camel case within `usage`. `reconciliation` is a
 * Millwright extension.
 */
export const HarnessUsage = z
  .object({
    available: z.boolean(),
    run_id: z.string(),
    conversation_id: z.string(),
    age_seconds: z.number().nullable().optional(),
    usage: z
      .object({
        harness: z.enum(["CLAUDE_CODE", "CODEX"]),
        metricsVersion: z.literal(1),
        captureSequence: z.int(),
        capturedAt: timestamp(),
        executionId: z.int(),
        snapshot: z.object({
          coverage: z.object({ tokenStatus: Coverage, toolStatus: Coverage }),
          payload: z.object({
            usage: Counters.nullable().optional(),
            toolCalls: z
              .object({ byName: z.record(z.string(), z.int()), total: z.int() })
              .nullable()
              .optional(),
          }),
        }),
      })
      .optional(),
    reconciliation: z
      .object({
        reported_tokens: z
          .int()
          .nullable()
          .meta({ description: "Tokens that the harness reported, each counted once. null: not measured." }),
        metered_tokens: z.int().nullable().meta({
          description: "Tokens that the model gateway metered. null: none. Costs are computed from these only.",
        }),
        unmeasured_call_count: z
          .int()
          .meta({ description: "Metered calls for which the provider did not return both input and output tokens." }),
        coverage: z
          .number()
          .nullable()
          .meta({ description: "Metered tokens / reported tokens, at most 1. null: unknown." }),
      })
      .optional()
      .meta({ ...EXTENSION, description: "Present with `usage`." }),
  })
  .meta({ id: "HarnessUsage" });

type UsageRecord = z.input<typeof HarnessUsage>;

/**
 * Returns the public members of a usage snapshot. `toolCalls.total` is the sum of `byName`. Token counters are not
 * summed.
 */
export function harnessUsage({
  harness,
  captureSequence,
  capturedAt,
  executionId,
  tokenStatus,
  toolStatus,
  counters,
  toolCalls,
  ageSeconds,
  ...tokens
}: orchestrator.HarnessUsage): Pick<UsageRecord, "age_seconds" | "usage" | "reconciliation"> {
  const byName = Object.fromEntries(Object.entries(toolCalls).map(([name, calls]) => [name, Number(calls)]));
  const total = Object.values(byName).reduce((sum, calls) => sum + calls, 0);
  return {
    age_seconds: Number(ageSeconds),
    usage: {
      harness: harness as "CLAUDE_CODE" | "CODEX",
      metricsVersion: 1,
      captureSequence: Number(captureSequence),
      capturedAt: isoTime(capturedAt!),
      executionId: Number(executionId),
      snapshot: {
        coverage: { tokenStatus: tokenStatus as "known", toolStatus: toolStatus as "known" },
        payload: { usage: counters ?? {}, toolCalls: { byName, total } },
      },
    },
    reconciliation: reconciliationOf(tokens),
  };
}

type Tokens = Pick<orchestrator.HarnessUsage, "reportedTokens" | "meteredTokens" | "unmeasuredCalls">;

const reconciliationOf = ({
  reportedTokens,
  meteredTokens,
  unmeasuredCalls,
}: Tokens): UsageRecord["reconciliation"] => ({
  reported_tokens: reportedTokens === undefined ? null : Number(reportedTokens),
  metered_tokens: meteredTokens === undefined ? null : Number(meteredTokens),
  unmeasured_call_count: Number(unmeasuredCalls),
  coverage: reportedTokens ? Math.min(1, Number(meteredTokens ?? 0n) / Number(reportedTokens)) : null,
});
