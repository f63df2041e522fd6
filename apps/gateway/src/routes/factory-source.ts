import { z } from "zod";
import type { definitions, factories as proto } from "@millwright/contracts";
import { route, timestamp, type Route } from "../rest/index.ts";
import { onBehalf, type Neighbours } from "../clients/neighbours.ts";
import { factoryParams } from "./factories.ts";
import { isoTime } from "./json-values.ts";

/** A definition tree has at most 20 MiB; JSON escapes make it somewhat longer. */
export const SOURCE_BODY_BYTES_MAX = 32 * 1024 * 1024;
const APPLY_TIMEOUT_MS = 60_000;

export const DefinitionFile = z.object({ path: z.string().min(1), content: z.string() }).meta({ id: "DefinitionFile" });
export const Diagnostic = z
  .object({ path: z.string(), line: z.int(), column: z.int(), code: z.string(), message: z.string(), severity: z.enum(["error", "warning"]) })
  .meta({ id: "Diagnostic" });
const PlanItem = z.object({ kind: z.string(), name: z.string(), action: z.string(), changed_fields: z.array(z.string()) }).meta({ id: "PlanItem" });
const Source = z
  .object({
    kind: z.enum(["none", "files", "git"]),
    repository_url: z.string().nullable(),
    branch: z.string().nullable(),
    directory: z.string(),
    files: z.array(DefinitionFile),
    active_version: z.int(),
    active_revision: z.string().nullable(),
    state: z.enum(["NONE", "APPLYING", "APPLIED", "FAILED"]),
    diagnostics: z.array(Diagnostic),
    applied_at: timestamp().nullable(),
  })
  .meta({ id: "FactorySource" });
const Check = z.object({ valid: z.boolean(), diagnostics: z.array(Diagnostic) }).meta({ id: "DefinitionCheck" });
const Files = z.object({ files: z.array(DefinitionFile).max(2_000).optional() }).optional();

/** The definition of a factory as code: read, replace, check, plan, apply. Ours. */
export function factorySourceRoutes({ factories }: Pick<Neighbours, "factories">): Route[] {
  const check = (verb: "validate" | "plan") =>
    route({
      method: "POST",
      path: `/factory/{uid}/source/${verb}`,
      summary: verb === "plan" ? "Show what applying would change" : "Check the definition",
      description: "Changes nothing. Without `files` the registered source is read.",
      errors: [403],
      params: factoryParams,
      bodyBytesMax: SOURCE_BODY_BYTES_MAX,
      timeoutMs: APPLY_TIMEOUT_MS,
      body: Files,
      response: verb === "plan" ? Check.extend({ plan: z.array(PlanItem) }).meta({ id: "DefinitionPlan" }) : Check,
      handler: async (input) => {
        const answer = await factories.checkSource({ factoryUid: input.params.uid, files: input.body?.files ?? [], plan: verb === "plan" }, onBehalf(input, { timeoutMs: APPLY_TIMEOUT_MS }));
        return { valid: answer.valid, diagnostics: answer.diagnostics.map(diagnosticRecord), ...(verb === "plan" ? { plan: answer.plan.map(planRecord) } : {}) };
      },
    });
  return [
    route({
      method: "GET",
      path: "/factory/{uid}/source",
      summary: "Read the definition's source and state",
      errors: [403],
      params: factoryParams,
      response: Source,
      handler: async (input) => sourceRecord((await factories.getSource({ factoryUid: input.params.uid }, onBehalf(input))).source!),
    }),
    route({
      method: "PUT",
      path: "/factory/{uid}/source",
      summary: "Replace the definition files, or name the repository they come from",
      description: "Does not apply. Send `files`, or `repository_url` with `branch` and `directory`.",
      verbs: ["factory.manage"],
      errors: [403],
      params: factoryParams,
      bodyBytesMax: SOURCE_BODY_BYTES_MAX,
      body: z.union([
        z.object({ files: z.array(DefinitionFile).min(1).max(2_000) }),
        z.object({ repository_url: z.string().min(1), branch: z.string().min(1).optional(), directory: z.string().optional() }),
      ]),
      response: Source,
      handler: async (input) => {
        const { body, params } = input;
        const source =
          "files" in body
            ? { kind: "files", files: body.files }
            : { kind: "git", repositoryUrl: body.repository_url, branch: body.branch ?? "main", directory: body.directory ?? "" };
        return sourceRecord((await factories.putSource({ factoryUid: params.uid, source }, onBehalf(input))).source!);
      },
    }),
    check("validate"),
    check("plan"),
    route({
      method: "POST",
      path: "/factory/{uid}/source/apply",
      summary: "Put the definition in force",
      description: "Takes the registered source, and either all of it serves afterwards or the last valid version goes on.",
      verbs: ["source.apply"],
      errors: [403, 409],
      params: factoryParams,
      timeoutMs: APPLY_TIMEOUT_MS,
      response: z.object({ source: Source, plan: z.array(PlanItem) }),
      handler: async (input) => {
        const { source, plan } = await factories.applySource({ factoryUid: input.params.uid }, onBehalf(input, { timeoutMs: APPLY_TIMEOUT_MS }));
        return { source: sourceRecord(source!), plan: plan.map(planRecord) };
      },
    }),
  ];
}

const sourceRecord = (source: proto.Source): z.input<typeof Source> => ({
  kind: source.kind as "files",
  repository_url: source.repositoryUrl ?? null,
  branch: source.branch ?? null,
  directory: source.directory,
  files: source.files.map(({ path, content }) => ({ path, content })),
  active_version: Number(source.activeVersion),
  active_revision: source.activeRevision ?? null,
  state: source.state as "APPLIED",
  diagnostics: source.diagnostics.map(diagnosticRecord),
  applied_at: source.appliedAt ? isoTime(source.appliedAt) : null,
});

const diagnosticRecord = ({ path, line, column, code, message, severity }: definitions.Diagnostic): z.input<typeof Diagnostic> => ({
  path, line, column, code, message, severity: severity === "warning" ? "warning" : "error",
});

const planRecord = ({ kind, name, action, changedFields }: definitions.PlanItem): z.input<typeof PlanItem> => ({ kind, name, action, changed_fields: changedFields });
