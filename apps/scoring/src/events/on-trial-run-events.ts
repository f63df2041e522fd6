import type { Sql } from "@millwright/database";
import type { EventsHandlers, FeedReader, StoredEvent } from "@millwright/events";
import { endingOf } from "../domain/infra-failure.ts";
import { attemptOfCause } from "../domain/trial.ts";
import { bindTrialRun, settleTrial, type RetryDelay } from "../usecases/settle-trial.ts";

const CREATED = "millwright.run.created.v1";
const FINISHED = "millwright.run.finished.v1";
const UNHANDLED = "millwright.run.unhandled.v1";

/**
 * Returns a reader that changes the type of events of other runs to one without a handler, so that the consumer skips
 * them.
 */
export const ofTrialRuns =
  (read: FeedReader): FeedReader =>
  async (range) => {
    const page = await read(range);
    return {
      ...page,
      events: page.events.map((event) =>
        event.payload["source"] === "BENCHMARK_TRIAL" ? event : { ...event, type: UNHANDLED },
      ),
    };
  };

/**
 * Returns handlers of the events of trials' runs. A created run is recorded in its attempt, even if the response to its
 * creation was lost. A finished run ends its attempt.
 */
export function onTrialRunEvents(delay: RetryDelay): EventsHandlers {
  const apply = async (tx: Sql, events: readonly StoredEvent[]): Promise<void> => {
    for (const event of events) await (event.type === CREATED ? onCreated(tx, event) : onFinished(tx, delay, event));
  };
  return { [CREATED]: apply, [FINISHED]: apply };
}

async function onCreated(tx: Sql, { cause = "", entityUid }: StoredEvent): Promise<void> {
  const attempt = attemptOfCause(cause);
  if (attempt) await bindTrialRun(tx, attempt, entityUid);
}

async function onFinished(
  tx: Sql,
  delay: RetryDelay,
  { entityUid: runUid, payload, occurredAt }: StoredEvent,
): Promise<void> {
  const { state, error_code: errorCode = null } = payload as { state: string; error_code?: string };
  await settleTrial(tx, delay, { runUid, ending: endingOf({ state, errorCode }), errorCode }, occurredAt);
}
