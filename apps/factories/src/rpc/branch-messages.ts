import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { factories } from "@millwright/contracts";
import { optionalTimestamp } from "@millwright/rpc";
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
    registeredHeadSha: branch.registeredHeadSha ?? undefined,
    appliedSha: branch.appliedSha ?? undefined,
    lastAppliedAt: optionalTimestamp(branch.lastAppliedAt),
    lastCheckedAt: optionalTimestamp(branch.lastCheckedAt),
    deletedAt: optionalTimestamp(branch.deletedAt),
    lastError: error
      ? { code: error.code, message: error.message, diagnostics: error.diagnostics.map(toDiagnosticMessage) }
      : undefined,
  };
}
