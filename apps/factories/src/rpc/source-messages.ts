import type { MessageInitShape } from "@bufbuild/protobuf";
import type { definitions, factories } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { optionalTimestamp } from "@millwright/rpc";
import type { Factory } from "../domain/factory.ts";
import type { PlanItem } from "../domain/plan.ts";
import type { GitSettings, OwnedDiagnostic, Source, SourceSettings } from "../domain/source.ts";
import type { Drift } from "../usecases/get-drift.ts";

export function toSourceMessage(
  factory: Factory,
  source: Source | undefined,
): MessageInitShape<typeof factories.SourceSchema> {
  if (!source) return { kind: "none", state: "NONE", activeVersion: BigInt(factory.currentVersion) };
  const { settings, status } = source;
  return {
    kind: settings.kind,
    ...(settings.kind === "git" ? toGitMembers(settings) : { files: settings.files }),
    activeVersion: BigInt(factory.currentVersion),
    state: status.state,
    diagnostics: status.diagnostics.map(toDiagnosticMessage),
    activeRevision: status.appliedRevision ?? undefined,
    appliedAt: optionalTimestamp(status.appliedAt),
  };
}

const toGitMembers = ({ url, branch, directory, secretName, username }: GitSettings) => ({
  repositoryUrl: url,
  branch,
  directory,
  secretName,
  username,
});

/** Errors: invalid_source. */
export function readSourceSettings(message: factories.Source | undefined): SourceSettings {
  if (message?.kind === "files")
    return { kind: "files", files: message.files.map(({ path, content }) => ({ path, content })) };
  if (message?.kind === "git") {
    const { repositoryUrl: url = "", branch, directory, secretName, username } = message;
    return {
      kind: "git",
      url,
      branch: branch || "main",
      directory,
      secretName,
      username,
    };
  }
  throw invalidArgument("invalid_source", `kind must be files or git (got "${message?.kind ?? ""}").`);
}

export const toDiagnosticMessage = ({
  path,
  line,
  column,
  code,
  message,
  severity,
}: OwnedDiagnostic): MessageInitShape<typeof definitions.DiagnosticSchema> => ({
  path,
  line,
  column,
  code,
  message,
  severity,
});

export const toPlanMessage = ({
  kind,
  name,
  action,
  changedFields,
}: PlanItem): MessageInitShape<typeof definitions.PlanItemSchema> => ({
  kind,
  name,
  action,
  changedFields,
});

export const toDriftMessage = ({
  activeVersion,
  activeRevision,
  serving,
  head,
}: Drift): MessageInitShape<typeof factories.GetDriftResponseSchema> => ({
  activeVersion: BigInt(activeVersion),
  serving: serving.map(toPlanMessage),
  head: {
    state: head.state,
    plan: head.plan.map(toPlanMessage),
    diagnostics: head.diagnostics.map(toDiagnosticMessage),
    revision: head.revision ?? undefined,
    errorCode: head.error?.code,
    errorMessage: head.error?.message,
  },
  activeRevision: activeRevision ?? undefined,
});
