import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { definitions, factories } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import type { Factory } from "../domain/factory.ts";
import type { PlanItem } from "../domain/plan.ts";
import type { OwnedDiagnostic, Source, SourceSettings } from "../domain/source.ts";

export function toSourceMessage(factory: Factory, source: Source | undefined): MessageInitShape<typeof factories.SourceSchema> {
  if (!source) return { kind: "none", state: "NONE", activeVersion: BigInt(factory.currentVersion) };
  const { settings, status } = source;
  return {
    kind: settings.kind,
    ...(settings.kind === "git" ? { repositoryUrl: settings.url, branch: settings.branch, directory: settings.directory } : { files: settings.files }),
    activeVersion: BigInt(factory.currentVersion),
    state: status.state,
    diagnostics: status.diagnostics.map(toDiagnosticMessage),
    ...(status.appliedRevision !== null && { activeRevision: status.appliedRevision }),
    ...(status.appliedAt && { appliedAt: timestampFromDate(status.appliedAt) }),
  };
}

/** Errors: invalid_source. */
export function readSourceSettings(message: factories.Source | undefined): SourceSettings {
  if (message?.kind === "files") return { kind: "files", files: message.files.map(({ path, content }) => ({ path, content })) };
  if (message?.kind === "git") return { kind: "git", url: message.repositoryUrl ?? "", branch: message.branch || "main", directory: message.directory };
  throw invalidArgument("invalid_source", "kind is files or git.");
}

export const toDiagnosticMessage = ({ path, line, column, code, message, severity }: OwnedDiagnostic): MessageInitShape<typeof definitions.DiagnosticSchema> => ({
  path, line, column, code, message, severity,
});

export const toPlanMessage = ({ kind, name, action, changedFields }: PlanItem): MessageInitShape<typeof definitions.PlanItemSchema> => ({
  kind, name, action, changedFields,
});
