import { z } from "zod";
import type { worker } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { objectOf } from "./rest-response.ts";
import { defineTool, type Tool } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

/**
 * Returns the tool with which a judge reports its verdict: one of the labels that were fixed when the judge was
 * dispatched, or that the evidence is not sufficient. An accepted report ends the turn; a refused one is a failure of
 * the call.
 */
export const reportScore = ({
  scorerUid,
  classifications,
}: Pick<worker.Judge, "scorerUid" | "classifications">): Tool =>
  defineTool({
    name: "report_score",
    action: "report_score",
    category: "review",
    description: `Reports your verdict on the run and ends your work. classification is one of: ${classifications.join(", ")}. reason states in a few sentences which evidence decided it. Only when the evidence does not suffice to decide, send undecided: true instead of a classification.`,
    isReadOnly: false,
    changes: "nothing",
    input: z.object({
      classification: z.enum(classifications).optional(),
      undecided: z.boolean().optional(),
      reason: z.string().optional(),
    }),
    shown: (input) => input as Record<string, string | boolean>,
    async run({ classification, undecided = false, reason }, { platform, run, callId }) {
      if ((classification !== undefined) === undecided)
        throw new ToolFailure("Send a classification, or undecided: true; one of the two.");
      const verdict = omitUndefined({ scorer_id: scorerUid, classification, failed: undecided || undefined, reason });
      const reported = objectOf(
        await platform.rest(
          "POST",
          `/api/v1/agent/runs/${run.runUid}/scores`,
          { results: [verdict] },
          { "idempotency-key": callId },
        ),
        "The score was not reported",
      );
      const error = refusalIn(reported["results"]);
      if (error !== undefined) throw new ToolFailure(`The score was refused: ${error}`);
      const message = classification ?? "undecided";
      return { output: { classification: message }, end: { kind: "done", message } };
    },
  });

/** Returns why the only result was not accepted; undefined if it was. */
function refusalIn(results: unknown): string | undefined {
  const [result] = Array.isArray(results) ? (results as unknown[]) : [];
  const { status, error } = (typeof result === "object" && result !== null ? result : {}) as {
    readonly status?: unknown;
    readonly error?: unknown;
  };
  if (status === "accepted") return undefined;
  return typeof error === "string" && error !== "" ? error : "the platform gave no reason";
}
