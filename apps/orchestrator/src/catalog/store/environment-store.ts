import { isUuid, type EnvironmentUid } from "@millwright/ids";
import type { JsonObject } from "../domain/agent-config.ts";
import type { Environment, EnvironmentGrant } from "../domain/environment.ts";
import type { OnceRequest } from "../../storage/domain/once-request.ts";
import type { Owner } from "@millwright/caller";
import type { PrismaClient } from "../../gen/prisma/client.ts";
import type { EnvironmentGrantModel, EnvironmentModel } from "../../gen/prisma/models.ts";
import { createOnce } from "../../storage/store/prisma-client.ts";

type Change = Pick<Environment, "config" | "lastEditorUid" | "updatedAt"> & {
  readonly linkSharing?: boolean | undefined;
};

export type EnvironmentStore = {
  /**
   * Returns the environments that these owners own, that were granted to them, or that they opened by link; the newest
   * update first, or by name (case-insensitively); ties by uid.
   */
  list(owners: readonly Owner[], sort: "last_updated" | "name"): Promise<Environment[]>;
  /** Returns undefined if the environment is absent or has another owner. */
  find(owners: readonly Owner[], uid: string): Promise<Environment | undefined>;
  /** Returns an environment of another owner that was granted to these grantees or that they opened by link. */
  findShared(grantees: readonly Owner[], uid: string): Promise<Environment | undefined>;
  /** Returns an environment of any owner while link sharing is on. */
  findLinked(uid: string): Promise<Environment | undefined>;
  /** Records that the grantee has opened the environment by link. */
  reach(uid: EnvironmentUid, grant: EnvironmentGrant): Promise<void>;
  /** Inserts a grant, or returns the existing one. */
  grant(uid: EnvironmentUid, grant: EnvironmentGrant): Promise<EnvironmentGrant>;
  /** Returns the grants, oldest first. Environments opened by link do not count as granted. */
  grants(uid: EnvironmentUid): Promise<EnvironmentGrant[]>;
  /** Returns false if there was no such grant. */
  revoke(uid: EnvironmentUid, grantUid: string): Promise<boolean>;
  /**
   * Inserts the environment once per key of the request; repeated calls return the first result. Errors:
   * idempotency_mismatch (conflict).
   */
  insert(environment: Environment, request: OnceRequest): Promise<Environment>;
  /** Returns undefined if the environment was deleted concurrently. */
  replace(uid: EnvironmentUid, change: Change): Promise<Environment | undefined>;
  delete(uid: EnvironmentUid): Promise<void>;
};

/** Stores environments with Prisma. */
export function environmentStore(prisma: PrismaClient): EnvironmentStore {
  // The principal of a service has no UUID, and owns nothing.
  const known = (owners: readonly Owner[]) => owners.filter(({ uid }) => isUuid(uid));
  const ownedBy = (owners: readonly Owner[]) => ({
    OR: known(owners).map(({ type, uid }) => ({ ownerType: type, ownerUid: uid })),
  });
  const grantedTo = (grantees: readonly Owner[]) => ({
    OR: known(grantees).map(({ type, uid }) => ({ granteeType: type, granteeUid: uid })),
  });
  const sharedWith = (grantees: readonly Owner[]) => ({
    OR: [
      { grants: { some: { isLink: false, ...grantedTo(grantees) } } },
      { linkSharing: true, grants: { some: grantedTo(grantees) } },
    ],
  });
  const withGrants = (grantees: readonly Owner[]) => ({
    grants: { where: { isLink: false, ...grantedTo(grantees) }, take: 1 },
  });
  const keyOf = (environmentUid: string, { grantee }: EnvironmentGrant) => ({
    environmentUid,
    granteeType: grantee.type,
    granteeUid: grantee.uid,
  });
  return {
    async list(owners, sort) {
      const where = { OR: [ownedBy(owners), sharedWith(owners)] };
      const rows = await prisma.environment.findMany({
        where,
        include: withGrants(owners),
        orderBy: [{ updatedAt: "desc" }, { uid: "asc" }],
      });
      const environments = rows.map((row) => toEnvironment(row, accessOf(row, owners)));
      return sort === "last_updated"
        ? environments
        : environments.sort((a, b) => byName(nameOf(a), nameOf(b)) || byName(a.uid, b.uid));
    },
    async find(owners, uid) {
      const row = await prisma.environment.findFirst({ where: { uid, ...ownedBy(owners) } });
      return row ? toEnvironment(row, "owned") : undefined;
    },
    async findShared(grantees, uid) {
      const row = await prisma.environment.findFirst({
        where: { uid, ...sharedWith(grantees) },
        include: withGrants(grantees),
      });
      return row ? toEnvironment(row, accessOf(row, [])) : undefined;
    },
    async findLinked(uid) {
      const row = await prisma.environment.findFirst({ where: { uid, linkSharing: true } });
      return row ? toEnvironment(row, "link") : undefined;
    },
    async reach(uid, grant) {
      await prisma.environmentGrant.createMany({
        data: [{ ...rowOf(grant), environmentUid: uid, isLink: true }],
        skipDuplicates: true,
      });
    },
    async grant(uid, grant) {
      const where = { environmentUid_granteeType_granteeUid: keyOf(uid, grant) };
      return toGrant(
        await prisma.environmentGrant.upsert({
          where,
          create: { ...rowOf(grant), environmentUid: uid, isLink: false },
          update: { isLink: false },
        }),
      );
    },
    async grants(uid) {
      return (
        await prisma.environmentGrant.findMany({
          where: { environmentUid: uid, isLink: false },
          orderBy: [{ createdAt: "asc" }, { uid: "asc" }],
        })
      ).map(toGrant);
    },
    revoke: async (uid, grantUid) =>
      (await prisma.environmentGrant.deleteMany({ where: { uid: grantUid, environmentUid: uid, isLink: false } }))
        .count > 0,
    async insert(environment, request) {
      const { uid, owner, config, creatorUid, lastEditorUid, updatedAt, linkSharing } = environment;
      const data = {
        ...{
          uid,
          ownerType: owner.type,
          ownerUid: owner.uid,
          creatorUid,
          lastEditorUid,
          linkSharing,
          createdAt: updatedAt,
          updatedAt,
        },
        ...columnsOf(config),
      };
      const row = await createOnce(prisma, request, (tx) => tx.environment.create({ data }));
      return toEnvironment({ ...row, updatedAt: new Date(row.updatedAt) }, "owned");
    },
    async replace(uid, { config, lastEditorUid, updatedAt, linkSharing }) {
      const data = {
        ...columnsOf(config),
        lastEditorUid,
        updatedAt,
        ...(linkSharing === undefined ? {} : { linkSharing }),
      };
      const [row] = await prisma.environment.updateManyAndReturn({ where: { uid }, data });
      return row ? toEnvironment(row, "owned") : undefined;
    },
    async delete(uid) {
      await prisma.environment.deleteMany({ where: { uid } });
    },
  };
}

const nameOf = (environment: Environment): string => String(environment.config["name"]).toLowerCase();
const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const columnsOf = (config: JsonObject) => ({ name: String(config["name"]), config: config as object });

function accessOf(
  row: EnvironmentModel & { readonly grants: readonly unknown[] },
  owners: readonly Owner[],
): Environment["access"] {
  if (owners.some(({ type, uid }) => type === row.ownerType && uid === row.ownerUid)) return "owned";
  return row.grants.length > 0 ? "granted" : "link";
}

const toEnvironment = (row: EnvironmentModel, access: Environment["access"]): Environment => ({
  uid: row.uid as EnvironmentUid,
  owner: { type: row.ownerType as Owner["type"], uid: row.ownerUid },
  config: row.config as JsonObject,
  creatorUid: row.creatorUid,
  lastEditorUid: row.lastEditorUid,
  updatedAt: row.updatedAt,
  linkSharing: row.linkSharing,
  access,
});

const rowOf = ({ uid, grantee, creatorUid, createdAt }: EnvironmentGrant) => ({
  uid,
  granteeType: grantee.type,
  granteeUid: grantee.uid,
  creatorUid,
  createdAt,
});
const toGrant = (row: EnvironmentGrantModel): EnvironmentGrant => ({
  uid: row.uid,
  grantee: { type: row.granteeType as Owner["type"], uid: row.granteeUid },
  creatorUid: row.creatorUid,
  createdAt: row.createdAt,
});
