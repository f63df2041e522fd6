import type { Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import { isUuid, type FactoryUid } from "@millwright/ids";
import { clampPageSize, type Cursors } from "@millwright/paging";
import type { Automation } from "../domain/automation.ts";
import { NOT_LISTENING_EXPLANATION, type EventRun, type ShownDecision } from "../domain/decision.ts";
import type { DecisionStore } from "../store/decision-store.ts";
import { findAutomation, type AutomationScopeDeps } from "./automation-scope.ts";
import { findFactory } from "./scope.ts";

export type ListDecisionsDeps = AutomationScopeDeps & {
  decisions: Pick<DecisionStore, "list" | "findEvent" | "runsOf">;
  cursors: Cursors;
};

const EVENTS_MAX = 100;

export type ListDecisionsRequest = {
  factoryUid: string;
  automationUid: string;
  eventUid: string;
  pageSize: number;
  pageToken: string;
};

/**
 * Lists why automations started or did not start, newest first: by automation, by event (or its delivery), or both. If
 * an automation has no trigger for an event, the list states that.
 * Errors: factory_not_found · automation_not_found · event_not_found (not decided, or pruned) · invalid_cursor.
 */
export async function listDecisions(
  deps: ListDecisionsDeps,
  caller: Caller,
  request: ListDecisionsRequest,
): Promise<{ decisions: ShownDecision[]; nextPageToken: string }> {
  const { factory, automation } =
    request.automationUid === ""
      ? { factory: await findFactory(deps, caller, request.factoryUid, "factory.view"), automation: undefined }
      : await findAutomation(deps, caller, request, "factory.view");
  const eventUid = request.eventUid === "" ? undefined : request.eventUid.toLowerCase();
  if (eventUid !== undefined && !isUuid(eventUid)) throw notFound("event");
  const bind = { factory: factory.uid, automation: automation?.uid, event: eventUid };
  const place =
    request.pageToken === ""
      ? undefined
      : (deps.cursors.open("decisions", bind, request.pageToken) as [string, string, string]);
  const limit = clampPageSize(request.pageSize, { default: 50, max: 100 });
  const list = () =>
    deps.decisions.list({
      factoryUid: factory.uid,
      limit: limit + 1,
      automationUid: automation?.uid,
      eventUid,
      after: place && { at: new Date(place[0]), eventUid: place[1], automationUid: place[2] },
    });
  let rows = await list();
  if (rows.length === 0 && eventUid !== undefined && !place) {
    const unlistened = await notListening(deps, factory.uid, eventUid, automation);
    rows = await list(); // the event may have been decided between the two reads
    if (rows.length === 0) return { decisions: unlistened, nextPageToken: "" };
  }
  const decisions = rows.slice(0, limit);
  const last = rows.length > limit ? decisions.at(-1) : undefined;
  return {
    decisions,
    nextPageToken: last
      ? deps.cursors.seal("decisions", bind, [last.decidedAt.toISOString(), last.event.uid, last.automationUid])
      : "",
  };
}

async function notListening(
  { decisions }: ListDecisionsDeps,
  factoryUid: FactoryUid,
  eventUid: string,
  automation: Automation | undefined,
): Promise<ShownDecision[]> {
  const found = await decisions.findEvent(factoryUid, eventUid);
  if (!found) throw notFound("event");
  if (!automation) return [];
  return [
    {
      ...found,
      automationUid: automation.uid,
      automationName: automation.name,
      outcome: "not_listening",
      checks: [],
      runUid: null,
      nextAttemptAt: null,
      explanation:
        automation.createdAt > found.decidedAt
          ? "The automation was created after this event."
          : NOT_LISTENING_EXPLANATION,
    },
  ];
}

/** Lists the runs that events or their deliveries have started. Errors: factory_not_found · too_many_events. */
export async function listEventRuns(
  deps: ListDecisionsDeps,
  caller: Caller,
  request: { factoryUid: string; eventUids: readonly string[] },
): Promise<EventRun[]> {
  if (request.eventUids.length > EVENTS_MAX)
    throw invalidArgument(
      "too_many_events",
      `A request must have at most ${EVENTS_MAX} event_uids (got ${request.eventUids.length}).`,
    );
  const { uid } = await findFactory(deps, caller, request.factoryUid, "factory.view");
  return deps.decisions.runsOf(uid, request.eventUids.filter(isUuid));
}
