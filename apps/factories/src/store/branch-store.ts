import type { Sql } from "@millwright/database";
import { appendEvents, type NewEvent } from "@millwright/events";
import { newUid, type FactoryUid } from "@millwright/ids";
import {
  BRANCHES_MAX,
  branchDeleted,
  isUnread,
  noRepository,
  productionBranch,
  tooManyBranches,
  type BranchError,
  type TrackedBranch,
} from "../domain/branch.ts";
import type { AppliedBranch } from "../domain/apply.ts";
import type { Factory } from "../domain/factory.ts";
import type { SourceSettings } from "../domain/source.ts";
import type { PrismaClient } from "../gen/prisma/client.ts";
import { errorData, toBranch } from "./branch-rows.ts";
import { lockFactory } from "./factory-store.ts";
import type { Changes, PrismaTx } from "./prisma-client.ts";

/** The result of a poll: a commit, null if the branch does not exist, or an error. */
export type Observation = { head: string | null; error: BranchError | null };

/** A claimed branch. The claim is valid until the branch is polled, pushed or requested again. */
export type DueBranch = { readonly branch: TrackedBranch; readonly claim: string };

export type BranchEvents = Record<"created" | "deleted", (branch: TrackedBranch) => NewEvent>;

/** Returns the queries of tracked branches of live factories. Deleted branches can be read until they are pruned. */
export function branchStore(prisma: PrismaClient, changes: Changes, sql: Sql) {
  return {
    async find(factoryUid: FactoryUid, uid: string): Promise<TrackedBranch | undefined> {
      const row = await prisma.trackedBranch.findFirst({ where: { uid, factoryUid } });
      return row ? toBranch(row) : undefined;
    },

    async findLive(factoryUid: FactoryUid, name: string): Promise<TrackedBranch | undefined> {
      const row = await prisma.trackedBranch.findFirst({ where: { factoryUid, name, deletedAt: null } });
      return row ? toBranch(row) : undefined;
    },

    /** Lists tracked branches: the production branch first, then by name. */
    async list(factoryUid: FactoryUid): Promise<TrackedBranch[]> {
      const rows = await prisma.trackedBranch.findMany({
        where: { factoryUid, deletedAt: null },
        orderBy: [{ isProduction: "desc" }, { name: "asc" }],
      });
      return rows.map(toBranch);
    },

    /**
     * Inserts a branch, or returns the tracked branch of this name.
     * Errors: source_not_git · too_many_branches · factory_not_found.
     */
    track: (
      factoryUid: FactoryUid,
      name: string,
      now: Date,
      eventOf: BranchEvents["created"],
    ): Promise<{ branch: TrackedBranch; isNew: boolean }> =>
      changes.change(async (tx, inTx) => {
        const factory = await lockFactory(tx, factoryUid);
        const known = await tx.trackedBranch.findFirst({ where: { factoryUid, name, deletedAt: null } });
        if (known) return { branch: toBranch(known), isNew: false };
        const source = await tx.definitionSource.findUnique({
          where: { factoryUid },
          select: { kind: true, repositoryUrl: true },
        });
        if (source?.kind !== "git" || source.repositoryUrl === null) throw noRepository();
        if ((await tx.trackedBranch.count({ where: { factoryUid, deletedAt: null } })) >= BRANCHES_MAX)
          throw tooManyBranches();
        return {
          branch: await insert(
            tx,
            inTx,
            factory,
            { url: source.repositoryUrl, name, isProduction: false },
            now,
            eventOf,
          ),
          isNew: true,
        };
      }),

    /** Ends the tracking. Does nothing for an absent branch. Errors: production_branch. */
    retire: (uid: string, now: Date, eventOf: BranchEvents["deleted"]): Promise<void> =>
      changes.change(async (tx, inTx) => {
        const branch = await lockBranch(tx, uid);
        if (branch?.isProduction) throw productionBranch();
        if (branch && !branch.deletedAt) await retire(tx, inTx, branch, now, eventOf);
      }),

    /**
     * Stores the result of a poll and the time of the next one. A deleted branch is unchanged. Returns the branch after
     * the change.
     */
    observe: (
      uid: string,
      { head, error }: Observation,
      now: Date,
      nextMs: (failed: number) => number,
      eventOf: (branch: TrackedBranch) => NewEvent,
      claim?: string,
    ): Promise<TrackedBranch | undefined> =>
      changes.change(async (tx, inTx) => {
        const before = await lockBranch(tx, uid);
        if (!before || before.deletedAt) return before;
        if (claim !== undefined && !(await isClaimed(tx, uid, claim))) return before;
        const { pollFailures } = await tx.trackedBranch.update({
          where: { uid },
          data: { lastCheckedAt: now, pollError: errorData(error), pollFailures: error ? { increment: 1 } : 0 },
          select: { pollFailures: true },
        });
        await tx.$executeRaw`UPDATE tracked_branches SET poll_at = now() + ${nextMs(pollFailures)}::double precision * interval '1 ms' WHERE uid = ${uid}::uuid`;
        const isKnown = head !== null || error?.code === "branch_missing";
        if (!isKnown || head === before.registeredHeadSha) return { ...before, lastCheckedAt: now, pollError: error };
        const row = await tx.trackedBranch.update({
          where: { uid },
          data: { registeredHeadSha: head, version: { increment: 1 }, updatedAt: now },
        });
        await appendEvents(inTx, [eventOf(toBranch(row))]);
        return toBranch(row);
      }),

    /**
     * Claims up to `limit` due branches, so that no other replica polls them for `leaseSeconds`. A claim is valid until
     * the head is polled, pushed or requested again.
     */
    async claimDue(limit: number, leaseSeconds: number): Promise<DueBranch[]> {
      const { rows } = await sql.query<{ uid: string; claim: string }>(
        `UPDATE tracked_branches SET poll_at = now() + make_interval(secs => $2)
          WHERE uid IN (SELECT b.uid FROM tracked_branches b JOIN factories f ON f.uid = b.factory_uid AND f.deleted_at IS NULL
                         WHERE b.deleted_at IS NULL AND b.poll_at <= now() ORDER BY b.poll_at LIMIT $1 FOR UPDATE OF b SKIP LOCKED)
        RETURNING uid, poll_at::text AS claim`,
        [limit, leaseSeconds],
      );
      const claims = new Map(rows.map(({ uid, claim }) => [uid, claim]));
      return (await prisma.trackedBranch.findMany({ where: { uid: { in: [...claims.keys()] } } })).map((row) => ({
        branch: toBranch(row),
        claim: claims.get(row.uid)!,
      }));
    },

    async findNamed(teamUid: string, name: string): Promise<TrackedBranch[]> {
      return (await prisma.trackedBranch.findMany({ where: { teamUid, name, deletedAt: null } })).map(toBranch);
    },

    async pollSoon(uids: readonly string[]): Promise<void> {
      await sql.query("UPDATE tracked_branches SET poll_at = now() WHERE uid = ANY ($1::uuid[]) AND poll_at > now()", [
        uids,
      ]);
    },

    /** Deletes branches that were retired long ago. */
    async prune(days: number): Promise<void> {
      await sql.query("DELETE FROM tracked_branches WHERE deleted_at < now() - make_interval(days => $1)", [days]);
    },
  };
}

export type BranchStore = ReturnType<typeof branchStore>;

/**
 * Updates the tracked branches for a source that is being registered: its branch becomes the production branch, and
 * branches of another repository are retired.
 */
export async function followSource(
  tx: PrismaTx,
  sql: Sql,
  factory: Factory,
  settings: SourceSettings,
  now: Date,
  events: BranchEvents,
): Promise<void> {
  const live = (await tx.trackedBranch.findMany({ where: { factoryUid: factory.uid, deletedAt: null } })).map(toBranch);
  const url = settings.kind === "git" ? settings.url : undefined;
  await tx.trackedBranch.updateMany({
    where: { factoryUid: factory.uid, isProduction: true },
    data: { isProduction: false },
  });
  for (const branch of live.filter(({ repositoryUrl }) => repositoryUrl !== url))
    await retire(tx, sql, { ...branch, isProduction: false }, now, events.deleted);
  if (settings.kind !== "git") return;
  const known = live.find(({ repositoryUrl, name }) => repositoryUrl === url && name === settings.branch);
  if (!known)
    await insert(
      tx,
      sql,
      factory,
      { url: settings.url, name: settings.branch, isProduction: true },
      now,
      events.created,
    );
  else
    await tx.trackedBranch.update({
      where: { uid: known.uid },
      data: { isProduction: true, updatedAt: known.isProduction ? known.updatedAt : now },
    });
  await tx.$executeRaw`UPDATE tracked_branches SET poll_at = now() WHERE factory_uid = ${factory.uid}::uuid AND deleted_at IS NULL`;
}

type NewBranch = { url: string; name: string; isProduction: boolean };

async function insert(
  tx: PrismaTx,
  sql: Sql,
  factory: Factory,
  { url, name, isProduction }: NewBranch,
  now: Date,
  eventOf: BranchEvents["created"],
): Promise<TrackedBranch> {
  const row = await tx.trackedBranch.create({
    data: {
      uid: newUid(),
      factoryUid: factory.uid,
      teamUid: factory.teamUid,
      repositoryUrl: url,
      name,
      isProduction,
      createdAt: now,
      updatedAt: now,
    },
  });
  await appendEvents(sql, [eventOf(toBranch(row))]);
  return toBranch(row);
}

async function retire(
  tx: PrismaTx,
  sql: Sql,
  { uid }: TrackedBranch,
  now: Date,
  eventOf: BranchEvents["deleted"],
): Promise<void> {
  const row = await tx.trackedBranch.update({
    where: { uid },
    data: { deletedAt: now, updatedAt: now, version: { increment: 1 } },
  });
  await appendEvents(sql, [eventOf(toBranch(row))]);
}

/**
 * Returns whether a claim is still valid. Every claim, result and request for a poll changes `poll_at`, the time of
 * the next poll.
 */
async function isClaimed(tx: PrismaTx, uid: string, claim: string): Promise<boolean> {
  const rows = await tx.$queryRaw<
    unknown[]
  >`SELECT 1 FROM tracked_branches WHERE uid = ${uid}::uuid AND poll_at = ${claim}::text::timestamptz`;
  return rows.length > 0;
}

async function lockBranch(tx: PrismaTx, uid: string): Promise<TrackedBranch | undefined> {
  await tx.$queryRaw`SELECT 1 FROM tracked_branches WHERE uid = ${uid}::uuid FOR UPDATE`;
  const row = await tx.trackedBranch.findUnique({ where: { uid } });
  return row ? toBranch(row) : undefined;
}

/**
 * Records the apply of a branch. `state` states whether every owner has confirmed it.
 * Errors: branch_deleted, if tracking ended concurrently.
 */
export async function noteApplied(
  tx: PrismaTx,
  branch: AppliedBranch,
  applied: { fingerprint: string | null; revision: string | null; at: Date | null; state: "ACTIVE" | "APPLYING" },
  now: Date,
): Promise<void> {
  const { count } = await tx.trackedBranch.updateMany({
    where: { uid: branch.uid, deletedAt: null },
    data: {
      state: applied.state,
      appliedSha: applied.revision,
      appliedFingerprint: applied.fingerprint,
      lastAppliedAt: applied.at,
      applyError: errorData(null),
      updatedAt: now,
    },
  });
  if (count === 0) throw branchDeleted();
  if (!branch.isNewest) return;
  // Only if no other head was registered since.
  const { uid, headBefore } = branch;
  await tx.trackedBranch.updateMany({
    where: { uid, registeredHeadSha: headBefore },
    data: { registeredHeadSha: applied.revision, pollError: errorData(null), lastCheckedAt: now },
  });
}

export async function noteFailed(tx: PrismaTx, { uid }: AppliedBranch, error: BranchError, now: Date): Promise<void> {
  const unread = isUnread(error) ? { pollError: errorData(error), lastCheckedAt: now } : {};
  await tx.trackedBranch.updateMany({
    where: { uid, deletedAt: null },
    data: { state: "FAILED", applyError: errorData(error), updatedAt: now, ...unread },
  });
}

/** Returns whether a team tracks any branch at a code host. */
export async function tracksAny(tx: Sql, teamUid: string): Promise<boolean> {
  const { rows } = await tx.query(
    "SELECT 1 FROM tracked_branches WHERE team_uid = $1 AND deleted_at IS NULL AND repository_url LIKE 'https:%' LIMIT 1",
    [teamUid],
  );
  return rows.length > 0;
}
