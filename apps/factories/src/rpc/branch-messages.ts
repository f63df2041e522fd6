import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { factories } from "@millwright/contracts";
import { repositoryOf } from "../domain/branch.ts";
import type { BranchStatus } from "../usecases/branches.ts";
import { toDiagnosticMessage } from "./source-messages.ts";

export function toBranchMessage({
  branch,
  freshness,
  isServing,
}: BranchStatus): MessageInitShape<typeof factories.BranchSchema> {
  const error = branch.applyError ?? branch.pollError;
  return {
    uid: branch.uid,
    factoryUid: branch.factoryUid,
    teamUid: branch.teamUid,
    name: branch.name,
    repository: repositoryOf(branch.repositoryUrl),
    state: branch.deletedAt ? "DELETED" : branch.state,
    freshness,
    isProduction: branch.isProduction,
    isServing,
    createdAt: timestampFromDate(branch.createdAt),
    updatedAt: timestampFromDate(branch.updatedAt),
    ...(branch.registeredHeadSha !== null && { registeredHeadSha: branch.registeredHeadSha }),
    ...(branch.appliedSha !== null && { appliedSha: branch.appliedSha }),
    ...(branch.lastAppliedAt && { lastAppliedAt: timestampFromDate(branch.lastAppliedAt) }),
    ...(branch.lastCheckedAt && { lastCheckedAt: timestampFromDate(branch.lastCheckedAt) }),
    ...(branch.deletedAt && { deletedAt: timestampFromDate(branch.deletedAt) }),
    ...(error && {
      lastError: { code: error.code, message: error.message, diagnostics: error.diagnostics.map(toDiagnosticMessage) },
    }),
  };
}
