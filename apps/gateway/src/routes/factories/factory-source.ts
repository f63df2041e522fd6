import { z } from "zod";
import type { definitions, factories as proto } from "@millwright/contracts";
import { route, timestamp, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { factoryParams } from "./factories.ts";
import { isoTime } from "../formats/json-values.ts";

/** A definition tree has at most 20 MiB; JSON escapes make it longer. */
export const SOURCE_BODY_BYTES_MAX = 32 * 1024 * 1024;
const APPLY_TIMEOUT_MS = 60_000;

export const DefinitionFile = z.object({ path: z.string().min(1), content: z.string() }).meta({ id: "DefinitionFile" });
export const Diagnostic = z
  .object({
    path: z.string(),
    line: z.int(),
    column: z.int(),
    code: z.string(),
    message: z.string(),
    severity: z.enum(["error", "warning"]),
  })
  .meta({ id: "Diagnostic" });
const PlanItem = z
  .object({ kind: z.string(), name: z.string(), action: z.string(), changed_fields: z.array(z.string()) })
  .meta({ id: "PlanItem" });
const Source = z
  .object({
    kind: z.enum(["none", "files", "git"]),
    repository_url: z.string().nullable(),
    branch: z.string().nullable(),
    directory: z.string(),
    secret_name: z.string().nullable().describe("Managed secret with the credential for the repository."),
    username: z.string().nullable(),
    files: z.array(DefinitionFile),
    active_version: z.int(),
    active_revision: z.string().nullable(),
    state: z.enum(["NONE", "APPLYING", "APPLIED", "FAILED"]),
    diagnostics: z
      .array(Diagnostic)
      .meta({ description: "Errors of the last apply, and current warnings of the active definition." }),
    applied_at: timestamp().nullable(),
  })
  .meta({ id: "FactorySource" });
const Drift = z
  .object({
    active_version: z.int(),
    active_revision: z.string().nullable(),
    serving: z.array(PlanItem),
    head: z.object({
      state: z.enum(["SAME", "DIFFERS", "INVALID", "UNKNOWN"]),
      revision: z.string().nullable(),
      plan: z.array(PlanItem),
      diagnostics: z.array(Diagnostic),
      error: z.object({ code: z.string(), message: z.string() }).nullable(),
    }),
  })
  .meta({ id: "DefinitionDrift" });
const Check = z.object({ valid: z.boolean(), diagnostics: z.array(Diagnostic) }).meta({ id: "DefinitionCheck" });
const Files = z.object({ files: z.array(DefinitionFile).max(2_000).optional() }).optional();

/** Returns the routes of a factory's definition as code: read, replace, validate, plan, apply. Millwright extension. */
export function factorySourceRoutes({ factories }: Pick<Upstreams, "factories">): Route[] {
  const check = (verb: "validate" | "plan") =>
    route({
      method: "POST",
      path: `/factory/{uid}/source/${verb}`,
      extension: true,
      summary: verb === "plan" ? "Show what applying would change" : "Check the definition",
      verbs: ["factory.view"],
      description:
        "Changes nothing. Without `files`, reads the registered source. Reports all problems at once: of the files, and of the models, environments, secrets and webhooks that they reference.",
      errors: [403],
      params: factoryParams,
      bodyBytesMax: SOURCE_BODY_BYTES_MAX,
      timeoutMs: APPLY_TIMEOUT_MS,
      body: Files,
      response: verb === "plan" ? Check.extend({ plan: z.array(PlanItem) }).meta({ id: "DefinitionPlan" }) : Check,
      handler: async (input) => {
        const response = await factories.checkSource(
          { factoryUid: input.params.uid, files: input.body?.files ?? [], plan: verb === "plan" },
          onBehalf(input, { timeoutMs: APPLY_TIMEOUT_MS }),
        );
        return {
          valid: response.valid,
          diagnostics: response.diagnostics.map(diagnosticRecord),
          plan: verb === "plan" ? response.plan.map(planRecord) : undefined,
        };
      },
    });
  return [
    route({
      method: "GET",
      path: "/factory/{uid}/source",
      extension: true,
      summary: "Read the definition's source and state",
      verbs: ["factory.view"],
      errors: [403],
      params: factoryParams,
      response: Source,
      handler: async (input) =>
        sourceRecord((await factories.getSource({ factoryUid: input.params.uid }, onBehalf(input))).source!),
    }),
    route({
      method: "PUT",
      path: "/factory/{uid}/source",
      extension: true,
      summary: "Replace the definition files or their repository",
      description:
        "Does not apply. Send `files`, or `repository_url` (https, or a path below a directory that the operator allows) with `branch` (default main) and `directory`. The branch is then tracked, and branches of another repository are no longer tracked. " +
        "`secret_name` is a managed secret of the team with the password or token of an https repository. `username` defaults to the user name that the code host expects with a token. Setting `secret_name` requires secret.manage, because its value is sent to the repository's host.",
      verbs: ["factory.manage"],
      errors: [403],
      params: factoryParams,
      bodyBytesMax: SOURCE_BODY_BYTES_MAX,
      body: z.union([
        z.object({ files: z.array(DefinitionFile).min(1).max(2_000) }),
        z.object({
          repository_url: z.string().min(1),
          branch: z.string().min(1).optional(),
          directory: z.string().optional(),
          secret_name: z.string().min(1).nullish(),
          username: z.string().min(1).nullish(),
        }),
      ]),
      response: Source,
      handler: async (input) => {
        const { body, params } = input;
        const source =
          "files" in body
            ? { kind: "files", files: body.files }
            : {
                kind: "git",
                repositoryUrl: body.repository_url,
                branch: body.branch ?? "main",
                directory: body.directory ?? "",
                secretName: body.secret_name || undefined,
                username: body.username || undefined,
              };
        return sourceRecord((await factories.putSource({ factoryUid: params.uid, source }, onBehalf(input))).source!);
      },
    }),
    route({
      method: "GET",
      path: "/factory/{uid}/source/drift",
      extension: true,
      summary: "Show the drift from the active definition",
      description:
        "`serving`: differences between live resources and the active definition, as changes that a repair would make. `head`: changes that applying the production branch's registered head (or the registered files) would make. " +
        "Differences are listed by field. UNKNOWN: the head is not known or could not be read. Changes nothing.",
      verbs: ["factory.view"],
      errors: [403, 409],
      params: factoryParams,
      timeoutMs: APPLY_TIMEOUT_MS,
      response: Drift,
      handler: async (input) =>
        driftRecord(
          await factories.getDrift({ factoryUid: input.params.uid }, onBehalf(input, { timeoutMs: APPLY_TIMEOUT_MS })),
        ),
    }),
    check("validate"),
    check("plan"),
    route({
      method: "POST",
      path: "/factory/{uid}/source/apply",
      extension: true,
      summary: "Apply the definition",
      description:
        "Applies the registered source atomically: if it fails, the last valid version stays active. Applying the active version again changes nothing, " +
        "unless `repair` is true: then it is applied as a new version, which repairs the drift that `source/drift` lists as `serving`. Both read the newest head of a git source. " +
        "Requires permission to change every resource in the plan: `agent.manage` for agents, `webhook.manage` for webhooks, `factory.manage` for everything else.",
      verbs: ["source.apply"],
      errors: [403, 409],
      params: factoryParams,
      timeoutMs: APPLY_TIMEOUT_MS,
      body: z.object({ repair: z.boolean().optional() }).optional(),
      response: z.object({ source: Source, plan: z.array(PlanItem) }),
      handler: async (input) => {
        const { source, plan } = await factories.applySource(
          { factoryUid: input.params.uid, repair: input.body?.repair ?? false },
          onBehalf(input, { timeoutMs: APPLY_TIMEOUT_MS }),
        );
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
  secret_name: source.secretName ?? null,
  username: source.username ?? null,
  files: source.files.map(({ path, content }) => ({ path, content })),
  active_version: Number(source.activeVersion),
  active_revision: source.activeRevision ?? null,
  state: source.state as "APPLIED",
  diagnostics: source.diagnostics.map(diagnosticRecord),
  applied_at: source.appliedAt ? isoTime(source.appliedAt) : null,
});

const driftRecord = ({
  activeVersion,
  activeRevision,
  serving,
  head,
}: proto.GetDriftResponse): z.input<typeof Drift> => ({
  active_version: Number(activeVersion),
  active_revision: activeRevision ?? null,
  serving: serving.map(planRecord),
  head: {
    state: (head?.state || "UNKNOWN") as "UNKNOWN",
    revision: head?.revision ?? null,
    plan: head?.plan.map(planRecord) ?? [],
    diagnostics: head?.diagnostics.map(diagnosticRecord) ?? [],
    error: head?.errorCode === undefined ? null : { code: head.errorCode, message: head.errorMessage },
  },
});

export const diagnosticRecord = ({
  path,
  line,
  column,
  code,
  message,
  severity,
}: definitions.Diagnostic): z.input<typeof Diagnostic> => ({
  path,
  line,
  column,
  code,
  message,
  severity: severity === "warning" ? "warning" : "error",
});

const planRecord = ({ kind, name, action, changedFields }: definitions.PlanItem): z.input<typeof PlanItem> => ({
  kind,
  name,
  action,
  changed_fields: changedFields,
});
