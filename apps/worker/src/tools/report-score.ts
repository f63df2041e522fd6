import { z } from "zod";
import type { worker } from "@millwright/contracts";
import { objectOf } from "./rest-answer.ts";
import { defineTool, ToolFailure, type Tool } from "./tool.ts";

/** The one outcome of a judge run: a label that was fixed when the judge was dispatched. An accepted report ends the turn; a refused one is a failure of the call. */
export const reportScore = ({ scorerUid, classifications }: Pick<worker.Judge, "scorerUid" | "classifications">): Tool =>
  defineTool({
    name: "report_score",
    action: "report_score",
    category: "review",
    description: `Reports your verdict on the run and ends your work. classification is one of: ${classifications.join(", ")}. reason says in a few sentences what in the evidence decided it.`,
    isReadOnly: false,
    changes: "nothing",
    input: z.object({ classification: z.enum(classifications), reason: z.string().optional() }),
    shown: ({ classification, reason }) => ({ classification, ...(reason === undefined ? {} : { reason }) }),
    async run({ classification, reason }, { platform, run, callId }) {
      const verdict = { scorer_id: scorerUid, classification, ...(reason === undefined ? {} : { reason }) };
      const answer = objectOf(await platform.rest("POST", `/api/v1/agent/runs/${run.runUid}/scores`, { results: [verdict] }, { "idempotency-key": callId }), "The score was not reported");
      const error = refusalIn(answer["results"]);
      if (error !== undefined) throw new ToolFailure(`The score was refused: ${error}`);
      return { output: { classification }, end: { kind: "done", message: classification } };
    },
  });

/** Why the only result was not accepted; undefined: it was. */
function refusalIn(results: unknown): string | undefined {
  const [result] = Array.isArray(results) ? (results as unknown[]) : [];
  const { status, error } = (typeof result === "object" && result !== null ? result : {}) as { readonly status?: unknown; readonly error?: unknown };
  if (status === "accepted") return undefined;
  return typeof error === "string" && error !== "" ? error : "the platform gave no reason";
}
