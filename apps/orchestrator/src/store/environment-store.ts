import { isUuid, type EnvironmentUid } from "@millwright/ids";
import type { JsonObject } from "../domain/agent-config.ts";
import type { Environment } from "../domain/environment.ts";
import type { OnceRequest } from "../domain/run-transaction.ts";
import type { Owner } from "../domain/run.ts";
import type { PrismaClient } from "../gen/prisma/client.ts";
import type { EnvironmentModel } from "../gen/prisma/models.ts";
import { createOnce } from "./prisma-client.ts";

export type EnvironmentStore = {
  /** Of these owners, newest update first or by name (case-insensitively); ties by uid. */
  list(owners: readonly Owner[], sort: "last_updated" | "name"): Promise<Environment[]>;
  /** Undefined when absent or of another owner. */
  find(owners: readonly Owner[], uid: string): Promise<Environment | undefined>;
  /** Once per key of the request; answers as the first time. Errors: idempotency_mismatch (conflict). */
  insert(environment: Environment, request: OnceRequest): Promise<Environment>;
  /** Undefined when it is gone meanwhile. */
  replace(uid: EnvironmentUid, change: Pick<Environment, "config" | "lastEditorUid" | "updatedAt">): Promise<Environment | undefined>;
  delete(uid: EnvironmentUid): Promise<void>;
};

/** Environments, in Prisma. */
export function environmentStore(prisma: PrismaClient): EnvironmentStore {
  // The principal of a service is no uid: it owns nothing.
  const ownedBy = (owners: readonly Owner[]) => ({ OR: owners.filter(({ uid }) => isUuid(uid)).map(({ type, uid }) => ({ ownerType: type, ownerUid: uid })) });
  return {
    async list(owners, sort) {
      const rows = await prisma.environment.findMany({ where: ownedBy(owners), orderBy: [{ updatedAt: "desc" }, { uid: "asc" }] });
      const environments = rows.map(toEnvironment);
      return sort === "last_updated" ? environments : environments.sort((a, b) => byName(nameOf(a), nameOf(b)) || byName(a.uid, b.uid));
    },
    async find(owners, uid) {
      const row = await prisma.environment.findFirst({ where: { uid, ...ownedBy(owners) } });
      return row ? toEnvironment(row) : undefined;
    },
    async insert(environment, request) {
      const { uid, owner, config, creatorUid, lastEditorUid, updatedAt } = environment;
      const data = { ...{ uid, ownerType: owner.type, ownerUid: owner.uid, creatorUid, lastEditorUid, createdAt: updatedAt, updatedAt }, ...columnsOf(config) };
      const row = await createOnce(prisma, request, (tx) => tx.environment.create({ data }));
      return toEnvironment({ ...row, updatedAt: new Date(row.updatedAt) });
    },
    async replace(uid, { config, lastEditorUid, updatedAt }) {
      const [row] = await prisma.environment.updateManyAndReturn({ where: { uid }, data: { ...columnsOf(config), lastEditorUid, updatedAt } });
      return row ? toEnvironment(row) : undefined;
    },
    async delete(uid) {
      await prisma.environment.deleteMany({ where: { uid } });
    },
  };
}

const nameOf = (environment: Environment): string => String(environment.config["name"]).toLowerCase();
const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const columnsOf = (config: JsonObject) => ({ name: String(config["name"]), config: config as object });

const toEnvironment = (row: EnvironmentModel): Environment => ({
  uid: row.uid as EnvironmentUid,
  owner: { type: row.ownerType as Owner["type"], uid: row.ownerUid },
  config: row.config as JsonObject,
  creatorUid: row.creatorUid,
  lastEditorUid: row.lastEditorUid,
  updatedAt: row.updatedAt,
});
