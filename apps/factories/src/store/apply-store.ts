import type { Definition, TreeFile } from "@millwright/definition";
import { appendEvents, type NewEvent } from "@millwright/events";
import type { AgentUid, FactoryUid } from "@millwright/ids";
import { enqueueWork } from "@millwright/work";
import type { Sql } from "@millwright/database";
import {
  ACTIVATE,
  applyInProgress,
  DROP,
  workKey,
  type Activation,
  type AppliedBranch,
  type Commit,
  type FailedApply,
  type NewVersion,
} from "../domain/apply.ts";
import { projectAutomations } from "../domain/automation.ts";
import type { PlanItem } from "../domain/plan.ts";
import type { PrismaClient } from "../gen/prisma/client.ts";
import { applyAutomations } from "./automation-store.ts";
import { toChangeData } from "./factory-rows.ts";
import { lockFactory, lockSource, orAliasTaken } from "./factory-store.ts";
import { noteApplied, noteFailed } from "./branch-store.ts";
import { json, type Changes, type PrismaTx } from "./prisma-client.ts";

/** Returns the queries of applies: their lease, their versions and the active version. */
export function applyStore(prisma: PrismaClient, changes: Changes) {
  return {
    /**
     * Acquires the apply lease of a factory for `seconds`. Returns false if another apply owns it. The times are those of
     * the database's clock, so that replicas agree.
     */
    async begin(uid: FactoryUid, token: string, seconds: number): Promise<boolean> {
      const taken = await prisma.$executeRaw`
        UPDATE definition_sources SET apply_lease_uid = ${token}::uuid, apply_lease_until = now() + make_interval(secs => ${seconds}::double precision)
         WHERE factory_uid = ${uid}::uuid AND (apply_lease_uid IS NULL OR apply_lease_until < now())`;
      return taken === 1;
    },

    /**
     * Extends the lease, unless another apply has acquired it, from the time when the row lock was acquired, which may be
     * after a wait.
     */
    async renew(uid: FactoryUid, token: string, seconds: number): Promise<void> {
      await prisma.$executeRaw`
        UPDATE definition_sources SET apply_lease_until = clock_timestamp() + make_interval(secs => ${seconds}::double precision) WHERE factory_uid = ${uid}::uuid AND apply_lease_uid = ${token}::uuid`;
    },

    async end(uid: FactoryUid, token: string): Promise<void> {
      await prisma.definitionSource.updateMany({
        where: { factoryUid: uid, applyLeaseUid: token },
        data: { applyLeaseUid: null, applyLeaseUntil: null },
      });
    },

    /** Allocates the next version and stores its content. Drops the version that a dead apply had staged. */
    open: (
      uid: FactoryUid,
      token: string,
      { fingerprint, tree, definition, activation }: NewVersion,
    ): Promise<number> =>
      changes.change(async (tx, sql) => {
        await lockUnderLease(tx, uid, token);
        await lockFactory(tx, uid);
        const left = await tx.definitionVersion.findMany({
          where: { factoryUid: uid, state: "STAGING" },
          select: { version: true },
        });
        for (const { version } of left) await dropVersion(tx, sql, { ...activation, version });
        const { lastVersion } = await tx.factory.update({
          where: { uid },
          data: { lastVersion: { increment: 1 } },
          select: { lastVersion: true },
        });
        const files = tree.files.map(({ path, content }) => ({ path, content: storable(content) }));
        await tx.definitionVersion.create({
          data: {
            factoryUid: uid,
            version: lastVersion,
            fingerprint,
            revision: tree.revision,
            files: json(files),
            definition: json(definition),
            requestId: activation.requestId,
            createdBy: activation.actor.uid,
          },
        });
        return lastVersion;
      }),

    /**
     * Commits the apply in one transaction: the version, the factory record, the events, and the work that guarantees
     * activation. Errors: alias_taken · branch_deleted.
     */
    commit: (
      uid: FactoryUid,
      token: string,
      { activation, branch, diagnostics, plan, now, define, automations, events }: Commit<NewEvent>,
    ): Promise<void> =>
      orAliasTaken(
        changes.change(async (tx, sql) => {
          await lockUnderLease(tx, uid, token);
          const next = define(await lockFactory(tx, uid));
          await tx.definitionVersion.updateMany({
            where: { factoryUid: uid, state: "CURRENT" },
            data: { state: "SUPERSEDED" },
          });
          const { fingerprint, revision } = await tx.definitionVersion.update({
            where: { factoryUid_version: { factoryUid: uid, version: activation.version } },
            data: { state: "CURRENT", diagnostics: json(diagnostics), plan: json(plan), committedAt: now },
            select: { fingerprint: true, revision: true },
          });
          await tx.trackedBranch.updateMany({
            where: { factoryUid: uid, state: "APPLYING" },
            data: { state: "ACTIVE" },
          });
          if (branch) await noteApplied(tx, branch, { fingerprint, revision, at: now, state: "APPLYING" }, now);
          await tx.factory.update({ where: { uid }, data: toChangeData(next) });
          await tx.definitionSource.update({
            where: { factoryUid: uid },
            data: {
              state: "APPLYING",
              appliedFingerprint: fingerprint,
              appliedRevision: revision,
              appliedAt: now,
              diagnostics: json(diagnostics),
            },
          });
          const { uid: factoryUid, teamUid } = next;
          const projected = await applyAutomations(sql, factoryUid, (before) =>
            projectAutomations(before, automations, { factoryUid, teamUid, creator: activation.actor }, now),
          );
          await appendEvents(sql, events(next, projected));
          await enqueueWork(sql, {
            kind: ACTIVATE,
            key: workKey(activation),
            payload: activation,
            teamUid: next.teamUid,
          });
        }),
      ),

    /**
     * Records a failed apply. The active version is unchanged, and the failed version, if any, is dropped at every owner.
     * Without `error`, nothing is recorded.
     */
    fail: (uid: FactoryUid, token: string, { error, branch, dropped, now }: FailedApply): Promise<void> =>
      changes.change(async (tx, sql) => {
        await lockUnderLease(tx, uid, token);
        if (error && (!branch || branch.isProduction)) {
          await tx.definitionSource.update({
            where: { factoryUid: uid },
            data: { state: "FAILED", diagnostics: json(error.diagnostics) },
          });
        }
        if (error && branch) await noteFailed(tx, branch, error, now);
        if (dropped) await dropVersion(tx, sql, dropped);
      }),

    /** Records an apply of the active version. Errors: branch_deleted. */
    settle: (uid: FactoryUid, token: string, branch: AppliedBranch | undefined, now: Date): Promise<void> =>
      changes.change(async (tx) => {
        await lockUnderLease(tx, uid, token);
        const { confirmedVersion, appliedFingerprint, appliedRevision, appliedAt } =
          await tx.definitionSource.findUniqueOrThrow({ where: { factoryUid: uid } });
        const current = await tx.definitionVersion.findFirstOrThrow({
          where: { factoryUid: uid, state: "CURRENT" },
          select: { version: true, diagnostics: true },
        });
        const isConfirmed = confirmedVersion === current.version;
        await tx.definitionSource.update({
          where: { factoryUid: uid },
          data: { state: isConfirmed ? "APPLIED" : "APPLYING", diagnostics: json(current.diagnostics) },
        });
        if (branch)
          await noteApplied(
            tx,
            branch,
            {
              fingerprint: appliedFingerprint,
              revision: appliedRevision,
              at: appliedAt,
              state: isConfirmed ? "ACTIVE" : "APPLYING",
            },
            now,
          );
      }),

    /** Records that every owner has activated the version, unless a newer one was committed. */
    confirm: (uid: FactoryUid, version: number, foreman: AgentUid | null): Promise<void> =>
      changes.change(async (tx) => {
        await lockSource(tx, uid);
        const { count } = await tx.factory.updateMany({
          where: { uid, currentVersion: version },
          data: { foremanAgentUid: foreman },
        });
        if (count === 0) return;
        await tx.definitionSource.update({ where: { factoryUid: uid }, data: { confirmedVersion: version } });
        await tx.definitionSource.updateMany({
          where: { factoryUid: uid, state: "APPLYING" },
          data: { state: "APPLIED" },
        });
        await tx.trackedBranch.updateMany({ where: { factoryUid: uid, state: "APPLYING" }, data: { state: "ACTIVE" } });
      }),

    /** Returns whether an owner of the definition has not confirmed the newest version. */
    async isSettling(uid: FactoryUid): Promise<boolean> {
      const row = await prisma.factory.findUnique({
        where: { uid },
        select: { currentVersion: true, source: { select: { confirmedVersion: true } } },
      });
      return row?.source ? row.source.confirmedVersion < row.currentVersion : false;
    },

    async currentDefinition(uid: FactoryUid): Promise<Definition | undefined> {
      const row = await prisma.definitionVersion.findFirst({
        where: { factoryUid: uid, state: "CURRENT" },
        select: { definition: true },
      });
      return row ? (row.definition as unknown as Definition) : undefined;
    },

    /** Returns the files of the active version. */
    async currentFiles(uid: FactoryUid): Promise<TreeFile[]> {
      const row = await prisma.definitionVersion.findFirst({
        where: { factoryUid: uid, state: "CURRENT" },
        select: { files: true },
      });
      return row ? (row.files as unknown as TreeFile[]) : [];
    },

    async currentPlan(uid: FactoryUid): Promise<PlanItem[]> {
      const row = await prisma.definitionVersion.findFirst({
        where: { factoryUid: uid, state: "CURRENT" },
        select: { plan: true },
      });
      return row ? (row.plan as PlanItem[]) : [];
    },
  };
}

export type ApplyStore = ReturnType<typeof applyStore>;

/** Locks the source and checks the lease, so that an apply that lost it cannot write. */
async function lockUnderLease(tx: PrismaTx, uid: FactoryUid, token: string): Promise<void> {
  if ((await lockSource(tx, uid)) !== token) throw applyInProgress();
}

async function dropVersion(tx: PrismaTx, sql: Sql, activation: Activation): Promise<void> {
  const { factory, version } = activation;
  await tx.definitionVersion.update({
    where: { factoryUid_version: { factoryUid: factory.uid, version } },
    data: { state: "DISCARDED" },
  });
  await enqueueWork(sql, { kind: DROP, key: workKey(activation), payload: activation, teamUid: factory.teamUid });
}

/** Replaces bytes of malformed skills that a text column cannot store. */
const storable = (content: string | Uint8Array): string =>
  (typeof content === "string" ? content : Buffer.from(content).toString("utf8")).replaceAll("\0", "\uFFFD");
