import type { TriggerEvent } from "../domain/trigger-event.ts";
import { withEnvelope } from "../domain/envelope.ts";
import type { EventEvaluation } from "./decide-event.ts";

type Subject = { automation_uid: string; cron: string; slot_at: string; name?: string };

/** Evaluates a slot of an automation's schedule, for this automation only, with its current triggers. */
export async function evaluateSlot(event: TriggerEvent): Promise<EventEvaluation> {
  const { automation_uid: uid, cron, slot_at: slotAt, name = "" } = event.subject as Subject;
  return {
    concerns: (automation) => automation.uid === uid,
    check: ({ provider, schedule }) =>
      provider === "schedule" && schedule?.cron === cron && (schedule.name ?? "") === name
        ? { passed: true, detail: `The slot ${slotAt} of ${name || cron} came due.`, failed: [] }
        : undefined,
    veto: () => undefined,
    runInput: ({ rules }) => ({
      prompt: withEnvelope(
        rules.prompt,
        "schedule",
        { schedule: name === "" ? cron : `${name} (${cron})`, slot: slotAt },
        undefined,
      ),
      source: "SCHEDULED_AGENT",
      metadata: { slot_at: slotAt },
    }),
  };
}
