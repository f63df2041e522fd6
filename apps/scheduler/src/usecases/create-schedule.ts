import { actorOf, requireVerb, type Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import { idempotentRequest, type IdempotentRequest } from "@millwright/idempotency";
import { newUid } from "@millwright/ids";
import { checkSettings, newSchedule, type GivenSettings, type Owner, type Schedule, type ScheduleUid } from "../domain/schedule.ts";
import { scheduleCreated } from "../events/schedule-events.ts";
import { originOf } from "../events/origin.ts";
import { isOneself } from "./scope.ts";

export type AgentDeps = {
  /** Errors: agent_not_found, for an agent that the team does not have. */
  agents: { requireAgent(caller: Caller, teamUid: string, agentUid: string): Promise<void> };
};

export type CreateScheduleDeps = AgentDeps & {
  schedules: { create(build: (now: Date) => { next: Schedule; event: NewEvent }, request: IdempotentRequest | undefined): Promise<Schedule> };
};

/**
 * Makes a schedule; its first slot is the first one after now. Its runs are made for the caller.
 *
 * Errors: team_not_found · not_authorized · those of `checkSettings` · agent_not_found · idempotency_mismatch (conflict).
 */
export async function createSchedule(deps: CreateScheduleDeps, caller: Caller, input: { owner: Owner; settings: GivenSettings; idempotencyKey: string }): Promise<Schedule> {
  const { owner, idempotencyKey } = input;
  if (owner.type === "team") requireVerb(caller, owner.uid, "schedule.manage", "team");
  else if (!isOneself(caller, owner) || caller.run) throw notFound("user");
  const settings = checkSettings(input.settings, owner);
  if (settings.agentUid !== null) await deps.agents.requireAgent(caller, owner.uid, settings.agentUid);
  const { type, uid } = actorOf(caller);
  const request = idempotentRequest(uid, "create-schedule", idempotencyKey, { owner, settings });
  return deps.schedules.create((now) => {
    const next = newSchedule(newUid<ScheduleUid>(), owner, { type, uid }, settings, now);
    return { next, event: scheduleCreated(next, originOf(caller)) };
  }, request);
}
