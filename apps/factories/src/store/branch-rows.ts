import { as, type FactoryUid, type TeamUid } from "@millwright/ids";
import type { BranchError, TrackedBranch } from "../domain/branch.ts";
import { Prisma, type TrackedBranch as BranchRow } from "../gen/prisma/client.ts";
import { json } from "./prisma-client.ts";

export const toBranch = (row: BranchRow): TrackedBranch => ({
  uid: row.uid,
  factoryUid: as<FactoryUid>(row.factoryUid),
  teamUid: as<TeamUid>(row.teamUid),
  repositoryUrl: row.repositoryUrl,
  name: row.name,
  isProduction: row.isProduction,
  state: row.state as TrackedBranch["state"],
  registeredHeadSha: row.registeredHeadSha,
  appliedSha: row.appliedSha,
  appliedFingerprint: row.appliedFingerprint,
  lastAppliedAt: row.lastAppliedAt,
  lastCheckedAt: row.lastCheckedAt,
  applyError: row.applyError as unknown as BranchError | null,
  pollError: row.pollError as unknown as BranchError | null,
  version: row.version,
  createdAt: row.createdAt,
  updatedAt: row.updatedAt,
  deletedAt: row.deletedAt,
});

/** Serializes an error for a nullable column. */
export const errorData = (error: BranchError | null) => (error ? json(error) : Prisma.DbNull);
