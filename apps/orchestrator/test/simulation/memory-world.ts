import { isMember, type Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { Job } from "../../src/runs/domain/assignment.ts";
import type { Run } from "../../src/runs/domain/run.ts";
import type { WorkerSession } from "../../src/runs/domain/worker-session.ts";
import { claimInMemory } from "./memory-queue.ts";
import { memoryTransaction, runsOfExecutions, viewOf } from "./memory-transaction.ts";
import { directiveOf, Rows, type LeaseRow } from "./rows.ts";
import type { RawView } from "./view.ts";
import type { World } from "./world.ts";

/** The run life cycle in memory, without a clock: time passes only by explicit calls. */
export function memoryWorld(): World & { readonly rows: Rows } {
  const rows = new Rows();
  const tx = memoryTransaction(rows);
  const refOf = (runUid: string) => {
    const { uid, rootRunUid, parentRunUid, owner, creatorUid, conversationUid } = rows.runs.get(runUid)!.record;
    return {
      runUid: uid,
      rootRunUid,
      owner,
      creatorUid,
      conversationUid,
      parentRunUid,
    };
  };
  const ownedLease = (
    session: Pick<WorkerSession, "uid">,
    { executionId, attempt }: { executionId: number; attempt: number },
  ): LeaseRow | undefined => {
    const lease = rows.leases.get(executionId);
    return lease?.attempt === attempt && lease.sessionUid === session.uid ? lease : undefined;
  };
  const visible = (caller: Caller, uid: string): Run | undefined => {
    const run = rows.runs.get(uid);
    return run && isMember(caller, run.record.owner.uid) ? viewOf(run) : undefined;
  };
  const world: World = {
    runs: (f) => rows.journal.run(() => f(tx)),
    claim: async (session, slots) => claimInMemory(rows, rows.sessions.get(session.uid)!, slots),
    runsOfExecutions: async (executionIds) => runsOfExecutions(rows, executionIds),
    async findJobs(session, leases) {
      const jobs = new Map<number, Job>();
      for (const lease of leases.flatMap((ref) => ownedLease(session, ref) ?? [])) {
        const { title, mode, interactive, metadata, frozen } = rows.runs.get(lease.runUid)!.record;
        const run = refOf(lease.runUid);
        jobs.set(lease.executionId, {
          run,
          title,
          mode,
          interactive,
          metadata,
          frozen,
          isBudgeted: false,
          traceparent: "",
        });
      }
      return jobs;
    },
    async findRunOfLease(session, ref) {
      const lease = ownedLease(session, ref);
      return lease?.isAccepted ? lease.runUid : undefined;
    },
    renewLeases: async (session, leases) =>
      leases.flatMap((ref) => {
        if (!ownedLease(session, ref)?.isAccepted) return [];
        const lease = rows.leases.patch(ref.executionId, { isExpired: false });
        return [
          {
            executionId: ref.executionId,
            attempt: ref.attempt,
            expiresAt: new Date(0),
            isStopping: lease.isStopping,
            run: refOf(lease.runUid),
          },
        ];
      }),
    async ackDirectives(session, acks) {
      for (const { executionId, attempt, seq } of acks.filter((ack) => ownedLease(session, ack))) {
        for (const directive of rows.directives
          .all()
          .filter((row) => row.executionId === executionId && row.attempt === attempt && row.seq <= seq))
          rows.directives.patch(`${executionId} ${directive.seq}`, { isAcked: true });
      }
    },
    listPendingDirectives: async (session) =>
      rows.directives
        .all()
        .filter((directive) => !directive.isAcked && ownedLease(session, directive)?.isAccepted)
        .toSorted((a, b) => a.executionId - b.executionId || a.seq - b.seq)
        .map((row) => directiveOf(rows, row)),
    tick: async (after) => ({
      outcome: "checked",
      overdue: rows.leases
        .all()
        .filter((lease) => lease.executionId > after && (lease.isExpired || lease.isFenced))
        .toSorted((a, b) => a.executionId - b.executionId)
        .map(({ executionId, attempt }) => ({ executionId, attempt })),
    }),
    findVisibleRun: async (caller, uid) => visible(caller, uid),
    async getVisibleRun(caller, uid) {
      const run = visible(caller, uid);
      if (!run) throw notFound("run");
      return run;
    },
    async addSession(session) {
      rows.sessions.put(session.uid, session);
      return { ...session, keyUid: "key", state: "READY" };
    },
    async expire(executionId) {
      if (rows.leases.get(executionId)) rows.leases.patch(executionId, { isExpired: true });
    },
    async endGrace(executionId) {
      if (rows.leases.get(executionId)?.isStopping) rows.leases.patch(executionId, { isFenced: true });
    },
    raw: async () => rawView(rows),
    close: async () => {},
  };
  return { ...world, rows };
}

const rawView = (rows: Rows): RawView => ({
  runs: rows.runs.all().map(({ record, state, status, submittedPrompt }) => ({
    uid: record.uid,
    state,
    status: status ? statusText(status.message, status.errorCode) : null,
    prompt: submittedPrompt ?? null,
  })),
  executions: rows.executions.all().map((execution) => {
    const lease = rows.leases.get(execution.id);
    return {
      ...execution,
      outcome: execution.outcome ?? null,
      lease: lease ? leaseText(lease.attempt, lease.isAccepted, lease.isStopping) : null,
    };
  }),
  waits: rows.runs.all().flatMap(({ record }) => {
    const wait = rows.waits.get(record.uid);
    return wait ? [{ runUid: record.uid, ...wait }] : [];
  }),
  messages: rows.messages
    .all()
    .map((message) => ({ ...message, executionId: message.executionId ?? null, takenAs: message.takenAs ?? null })),
  events: rows.events
    .all()
    .map((event) => ({ ...event, executionId: event.executionId ?? null, attempt: event.attempt ?? null })),
  capacity: rows.capacity
    .entries()
    .map(([scope, { inUse, virtualTime, lastStart }]) => ({ scope, inUse, virtualTime, lastStart })),
});

export const statusText = (message: string, code: string | undefined): string => `${message} ${code ?? ""}`;
export const leaseText = (attempt: number, isAccepted: boolean, isStopping: boolean): string =>
  `${attempt} ${isAccepted ? "accepted" : "offered"}${isStopping ? " stopping" : ""}`;
