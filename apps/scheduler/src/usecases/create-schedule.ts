import { actorOf, requireVerbAs, type Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import { idempotentRequest, type IdempotentRequest } from "@millwright/idempotency";
import { newUid } from "@millwright/ids";
import {
  checkSettings,
  environmentOf,
  newSchedule,
  type GivenSettings,
  type Owner,
  type Schedule,
  type ScheduleSettings,
  type ScheduleUid,
} from "../domain/schedule.ts";
import { scheduleCreated } from "../events/schedule-events.ts";
import { originOf } from "../events/origin.ts";

export type ReferenceDeps = {
  /** Errors: agent_not_found, for an agent that the team does not have. */
  agents: { requireAgent(caller: Caller, teamUid: string, agentUid: string): Promise<void> };
  /** Errors: environment_not_found, environment_personal (invalid_argument). */
  environments: { requireEnvironment(caller: Caller, owner: Owner, uid: string): Promise<void> };
};

/**
 * Checks the agent and environment that settings name; those that `earlier` already named are not checked again.
 * Errors: those of `ReferenceDeps`.
 */
export async function requireReferences(
  deps: ReferenceDeps,
  caller: Caller,
  owner: Owner,
  settings: ScheduleSettings,
  earlier?: ScheduleSettings,
): Promise<void> {
  const { agentUid } = settings;
  const environment = environmentOf(settings);
  if (agentUid !== null && agentUid !== earlier?.agentUid) await deps.agents.requireAgent(caller, owner.uid, agentUid);
  if (environment !== undefined && environment !== (earlier && environmentOf(earlier)))
    await deps.environments.requireEnvironment(caller, owner, environment);
}

type Build = (now: Date) => { next: Schedule; event: NewEvent };

export type CreateScheduleDeps = ReferenceDeps & {
  schedules: {
    create(build: Build, request: IdempotentRequest | undefined): Promise<Schedule>;
    findCreated(build: Build, request: IdempotentRequest): Promise<Schedule | undefined>;
  };
};

/**
 * Creates a schedule; its first slot is the first one after now. Its runs are created for the caller.
 *
 * Errors: team_not_found · not_authorized · those of `checkSettings` · agent_not_found · environment_not_found ·
 * environment_personal · idempotency_mismatch (conflict).
 */
export async function createSchedule(
  deps: CreateScheduleDeps,
  caller: Caller,
  input: { owner: Owner; settings: GivenSettings; idempotencyKey: string },
): Promise<Schedule> {
  const { owner, idempotencyKey } = input;
  if (caller.run && owner.type === "user") throw notFound("user");
  requireVerbAs(caller, owner, "schedule.manage", owner.type);
  const settings = checkSettings(input.settings, owner);
  const { type, uid } = actorOf(caller);
  const request = idempotentRequest(uid, "create-schedule", idempotencyKey, { owner, settings });
  const build: Build = (now) => {
    const next = newSchedule(newUid<ScheduleUid>(), owner, { type, uid }, settings, now);
    return { next, event: scheduleCreated(next, originOf(caller)) };
  };
  const created = request && (await deps.schedules.findCreated(build, request));
  if (created) return created;
  await requireReferences(deps, caller, owner, settings);
  return deps.schedules.create(build, request);
}
