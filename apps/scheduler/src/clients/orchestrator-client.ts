import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller, type PrincipalType, type Verb } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { newUid, type TeamUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { Owner, Schedule } from "../domain/schedule.ts";
import { causeKeyOf, type ClaimedSlot, type LiveRun } from "../domain/slot.ts";

const LIVE = ["QUEUED", "PENDING", "CLAIMED", "INPROGRESS"];

/** Returns a client that creates, lists and cancels runs on behalf of the creators of schedules. */
export function orchestratorClient(
  transport: Transport,
  signer: CallerSigner,
  { publicUrl, timeoutMs }: { publicUrl: string; timeoutMs: number },
) {
  const runs = clientFor(orchestrator.RunService, transport, { signer });
  const options = (schedule: Schedule) => call(callerFor(signer.service, schedule), { timeoutMs });
  return {
    async create(slots: readonly ClaimedSlot[]): Promise<string[]> {
      const created = await runs.createRuns(
        { runs: slots.map((slot) => runRequest(slot, publicUrl)) },
        options(slots[0]!.schedule),
      );
      return created.runs.map(({ run }) => run!.uid);
    },

    async listLive(schedule: Schedule): Promise<LiveRun[]> {
      const { uid: scheduleUid, owner } = schedule;
      const teamUid = owner.type === "team" ? owner.uid : "";
      const found = await runs.listRuns(
        { scheduleUid, teamUid, states: LIVE, sortBy: "created_at", sortOrder: "asc", pageSize: 100 },
        options(schedule),
      );
      return found.runs.map(({ uid, causeKey }) => ({ uid, causeKey }));
    },

    async cancel(schedule: Schedule, runUid: string, cause: string): Promise<void> {
      await runs.cancelRun({ runUid, cause, idempotencyKey: `${cause} ${runUid}` }, options(schedule));
    },
  };
}

function runRequest(slot: ClaimedSlot, publicUrl: string) {
  const { schedule } = slot;
  return {
    title: schedule.name,
    mode: schedule.mode,
    ownerType: schedule.owner.type,
    ownerUid: schedule.owner.uid,
    metadata: schedule.metadata,
    source: "SCHEDULED_AGENT",
    causeKey: causeKeyOf(slot),
    schedule: { scheduleId: schedule.uid, scheduleName: schedule.name, cronSchedule: schedule.cronSchedule },
    triggerUrl: `${publicUrl}/schedules/${schedule.uid}`,
    prompt: schedule.prompt || undefined,
    config: schedule.agentConfig ?? undefined,
    agentUid: schedule.agentUid ?? undefined,
  };
}

/** Returns a client that checks the environments that schedules name. */
export function environmentClient(transport: Transport, signer: CallerSigner) {
  const catalog = clientFor(orchestrator.CatalogService, transport, { signer });
  return {
    /** Errors: environment_not_found, environment_personal (invalid_argument). */
    async requireEnvironment(caller: Caller, owner: Owner, uid: string): Promise<void> {
      await catalog.checkEnvironment({ uid, ownerType: owner.type, ownerUid: owner.uid }, call(caller));
    },
  };
}

const SLOT_VERBS = ["run.view", "run.create", "run.manage"] as const satisfies readonly Verb[];

/**
 * Returns this service on behalf of the schedule's creator, with only the verbs that its slots need. A team's schedule
 * may use what was shared with its creator.
 */
function callerFor(service: string, { owner, creator }: Schedule): Caller {
  const teams = owner.type === "team" ? [{ teamUid: owner.uid as TeamUid, verbs: SLOT_VERBS }] : [];
  const self = serviceCaller(service, newUid(), { type: creator.type as PrincipalType, uid: creator.uid }, teams);
  return creator.type === "user" ? { ...self, personal: owner.type === "user" ? SLOT_VERBS : ["run.view"] } : self;
}
