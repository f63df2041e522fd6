import type { CapacityDefaults, ScopeSettings } from "../../src/catalog/domain/queue-settings.ts";
import { PRIORITY_STEP_MS } from "../../src/catalog/domain/queue-settings.ts";
import type { RunRecord, CapacitySubject } from "../../src/runs/domain/run-record.ts";
import type { CapacityRow, ExecutionRow, Rows, SessionRow } from "./rows.ts";

/** Returns the lane of a run. The same workers may claim all executions of a lane, under the same caps. */
export const laneOf = ({ owner, frozen: { agent_uid, factory_uid, requirements } }: RunRecord): string =>
  JSON.stringify([
    owner.uid,
    agent_uid ?? null,
    factory_uid ?? null,
    requirements.worker_host ?? null,
    requirements.harness,
    requirements.image ?? null,
  ]);

/** Returns the scopes whose capacity an execution uses. The owner's scope is last. */
const scopesOf = ({ owner, agentUid, factoryUid }: CapacitySubject): string[] => [
  ...(agentUid ? [`agent ${agentUid}`] : []),
  ...(factoryUid ? [`factory ${factoryUid}`] : []),
  `${owner.type} ${owner.uid}`,
];

const subjectOf = ({
  owner,
  frozen: { agent_uid: agentUid, factory_uid: factoryUid },
}: RunRecord): CapacitySubject => ({ owner, agentUid, factoryUid });

export function ensureCapacity(
  rows: Rows,
  subject: CapacitySubject,
  settings: ScopeSettings,
  defaults: CapacityDefaults,
): boolean {
  for (const scope of scopesOf(subject)) {
    const kind = scope.startsWith("agent") ? "agent" : scope.startsWith("factory") ? "factory" : "team";
    const { concurrencyLimit, isPaused, weight, priority, version } = settings[kind];
    const before = rows.capacity.get(scope);
    if (before && before.version > version) continue;
    rows.capacity.put(scope, {
      inUse: 0,
      virtualTime: 0,
      lastStart: 0,
      ...before,
      max: concurrencyLimit || defaults[kind],
      isPaused,
      weight,
      priority,
      version,
    });
  }
  return scopesOf(subject).some((scope) => rows.capacity.get(scope)!.inUse >= rows.capacity.get(scope)!.max);
}

export function releaseCapacity(rows: Rows, subject: CapacitySubject): void {
  for (const scope of scopesOf(subject)) rows.capacity.patch(scope, { inUse: rows.capacity.get(scope)!.inUse - 1 });
}

type Candidate = {
  readonly lane: string;
  readonly record: RunRecord;
  readonly head: ExecutionRow;
  readonly start: number;
  readonly own: CapacityRow;
  readonly waitsSince: number;
};

/**
 * Claims for a worker, lane by lane, and returns the offers in order. Ends when the worker's slots are full, or when no
 * execution is left that it may claim.
 */
export function claimInMemory(
  rows: Rows,
  session: SessionRow,
  slots: number,
): { executionId: number; attempt: number }[] {
  const offers: { executionId: number; attempt: number }[] = [];
  while (offers.length < slots) {
    const candidates = eligible(rows, session);
    const best = candidates.toSorted(byTurn)[0];
    if (!best) break;
    const scopes = scopesOf(subjectOf(best.record));
    const owners = new Map(candidates.map(({ record, own }) => [record.owner.uid, own.weight]));
    const share = Math.max(
      1,
      Math.floor(((slots - offers.length) * best.own.weight) / [...owners.values()].reduce((a, b) => a + b)),
    );
    const room = Math.min(...scopes.map((scope) => rows.capacity.get(scope)!.max - rows.capacity.get(scope)!.inUse));
    const taken = queuedOf(rows, best.lane).slice(
      0,
      Math.min(share, room, slots - offers.length, freeSlots(rows, session)),
    );
    if (taken.length === 0) break;
    for (const execution of taken) offers.push(offerOne(rows, session, execution));
    for (const scope of scopes) {
      const row = rows.capacity.get(scope)!;
      const isOwner = scope === scopes.at(-1);
      const turn =
        isOwner && !session.teamUid
          ? { virtualTime: best.start + taken.length / row.weight, lastStart: best.start }
          : {};
      rows.capacity.patch(scope, { inUse: row.inUse + taken.length, ...turn });
    }
  }
  return offers.toSorted((a, b) => a.executionId - b.executionId);
}

const byTurn = (a: Candidate, b: Candidate): number =>
  a.start - b.start ||
  a.own.virtualTime - b.own.virtualTime ||
  (a.record.owner.uid < b.record.owner.uid ? -1 : a.record.owner.uid > b.record.owner.uid ? 1 : 0) ||
  b.record.depth - a.record.depth ||
  a.waitsSince - b.waitsSince ||
  a.head.id - b.head.id;

function eligible(rows: Rows, session: SessionRow): Candidate[] {
  const clock = Math.max(0, ...rows.capacity.all().map(({ lastStart }) => lastStart));
  const lanes = new Set(
    rows.executions
      .all()
      .filter(({ state }) => state === "QUEUED")
      .map(({ lane }) => lane),
  );
  return [...lanes].flatMap((lane) => {
    const [head] = queuedOf(rows, lane);
    if (!head) return [];
    const { record } = rows.runs.get(head.runUid)!;
    const capacities = scopesOf(subjectOf(record)).map((scope) => rows.capacity.get(scope)!);
    const own = capacities.at(-1)!;
    if (!mayTake(session, record) || capacities.some(({ inUse, max, isPaused }) => isPaused || inUse >= max)) return [];
    const priority = record.frozen.agent_uid ? capacities[0]!.priority : 0;
    return [
      {
        lane,
        record,
        head,
        own,
        start: Math.max(own.virtualTime, clock),
        waitsSince: head.id - priority * PRIORITY_STEP_MS,
      },
    ];
  });
}

function mayTake(
  { teamUid, workerHost, harnessTypes, images, arch: own }: SessionRow,
  { owner, frozen: { requirements } }: RunRecord,
): boolean {
  const { harness, image, arch, worker_host: host } = requirements;
  const isServed =
    teamUid === undefined
      ? host === undefined
      : owner.type === "team" && owner.uid === teamUid && (host === undefined || host === workerHost);
  return (
    isServed &&
    harnessTypes.includes(harness) &&
    (image === undefined || images.length === 0 || images.includes(image)) &&
    (arch === undefined || own === undefined || own === arch)
  );
}

/**
 * Returns the queued executions of a lane, deepest first, then oldest, except while the run's previous execution is
 * stopping.
 */
function queuedOf(rows: Rows, lane: string): ExecutionRow[] {
  const isThere = (runUid: string) => rows.executionsOf(runUid).some(({ state }) => state === "STOPPING");
  const depth = ({ runUid }: ExecutionRow) => rows.runs.get(runUid)!.record.depth;
  return rows.executions
    .all()
    .filter((execution) => execution.lane === lane && execution.state === "QUEUED" && !isThere(execution.runUid))
    .toSorted((a, b) => depth(b) - depth(a) || a.id - b.id);
}

const freeSlots = (rows: Rows, { uid, slots }: SessionRow): number =>
  Math.max(0, slots - rows.leases.all().filter(({ sessionUid }) => sessionUid === uid).length);

function offerOne(
  rows: Rows,
  session: SessionRow,
  { id, attempt, runUid }: ExecutionRow,
): { executionId: number; attempt: number } {
  rows.executions.patch(id, { state: "OFFERED", attempt: attempt + 1, workerHost: session.workerHost });
  rows.runs.patch(runUid, { state: "PENDING" });
  rows.leases.put(id, {
    executionId: id,
    attempt: attempt + 1,
    runUid,
    sessionUid: session.uid,
    isAccepted: false,
    isExpired: false,
    isStopping: false,
    isFenced: false,
  });
  return { executionId: id, attempt: attempt + 1 };
}
