import type { JsonObject } from "@bufbuild/protobuf";
import { z } from "zod";
import type { ModelStep } from "../model/model-provider.ts";
import type { TurnEnd } from "../tools/tool.ts";

const text = z.string();
const failure = z.object({ code: text, message: text, retryable: z.boolean(), reason: text });
const turnEnd: z.ZodType<TurnEnd> = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("done"), message: text.optional() }),
  z.object({ kind: z.literal("failed"), failure }),
  z.object({ kind: z.literal("blocked"), message: text }),
  z.object({ kind: z.literal("waiting"), policy: z.enum(["all", "any"]) }),
  z.object({ kind: z.literal("interrupted") }),
]);

/** The end of a turn as a step's event says it (`end`): written with the step, so that whoever goes on from the events ends the turn in the same way. */
export const endOfStep = (end: TurnEnd | ModelStep["next"] | undefined): { readonly end?: JsonObject } =>
  end === undefined || end.kind === "go_on" ? {} : { end: { ...end } };

/** The payload of `turn_end`. */
export function turnEndPayload(end: TurnEnd): JsonObject {
  const { kind, ...rest } = end;
  if ("failure" in rest) return { outcome: kind, error: { ...rest.failure } };
  return { outcome: kind, ...rest };
}

/** What an event says about the end of its turn; undefined when nothing, or nothing that can be read. */
export function endIn({ kind, payload }: { readonly kind: string; readonly payload: JsonObject }): TurnEnd | undefined {
  const { outcome, error, ...rest } = payload;
  const end =
    kind === "turn_end"
      ? { kind: outcome, ...rest, ...(error === undefined ? {} : { failure: error }) }
      : payload["end"];
  const parsed = turnEnd.safeParse(end);
  return parsed.success ? parsed.data : undefined;
}
