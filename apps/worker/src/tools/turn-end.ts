import type { JsonObject } from "@bufbuild/protobuf";
import { z } from "zod";
import { omitUndefined } from "@millwright/json";
import type { ModelStep } from "../model/model-provider.ts";
import type { TurnEnd } from "./tool.ts";

const text = z.string();
const failure = z.object({ code: text, message: text, retryable: z.boolean(), reason: text });
const turnEnd: z.ZodType<TurnEnd> = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("done"), message: text.optional() }),
  z.object({ kind: z.literal("failed"), failure }),
  z.object({ kind: z.literal("blocked"), message: text }),
  z.object({ kind: z.literal("waiting"), policy: z.enum(["all", "any"]) }),
  z.object({ kind: z.literal("interrupted") }),
]);

/**
 * Returns the end of a turn as a field of a step's event (`end`). It is stored with the step, so that a later attempt
 * ends the turn in the same way.
 */
export const endOfStep = (end: TurnEnd | ModelStep["next"] | undefined): JsonObject | undefined =>
  end === undefined || end.kind === "continue" ? undefined : omitUndefined({ ...end });

/** Returns the payload of `turn_end`. */
export function turnEndPayload(end: TurnEnd): JsonObject {
  const { kind, ...rest } = end;
  if ("failure" in rest) return { outcome: kind, error: { ...rest.failure } };
  return { outcome: kind, ...rest };
}

/** Returns the end of a turn that an event contains; undefined if there is none or it is invalid. */
export function endIn({ kind, payload }: { readonly kind: string; readonly payload: JsonObject }): TurnEnd | undefined {
  const { outcome, error, ...rest } = payload;
  const end = kind === "turn_end" ? { kind: outcome, ...rest, failure: error } : payload["end"];
  const parsed = turnEnd.safeParse(end);
  return parsed.success ? parsed.data : undefined;
}
