import type { ApiDocument } from "./client.ts";

/** Constraints of a query parameter in the specification. `many`: the parameter may be repeated. */
export type Param = {
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly min?: number;
  readonly max?: number;
  readonly many?: true;
  readonly required?: true;
  readonly is?: "boolean" | "date-time" | "map";
};
export type Operation = {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path below `/api/v1`. */
  readonly path: string;
  readonly ok: readonly number[];
  /** Statuses besides 500, which every operation may return. */
  readonly errors: readonly number[];
  readonly query?: Readonly<Record<string, Param>>;
  /** True if the operation accepts `X-Service-Team-Uid`. */
  readonly hasTeam?: true;
  /** Minimal valid body. */
  readonly body?: unknown;
  /** Parameters that the specification does not contain. */
  readonly ours?: readonly string[];
};

const TIME: Param = { is: "date-time" };
const TEXT: Param = {};
const STATES = ["QUEUED", "PENDING", "CLAIMED", "INPROGRESS", "SUCCEEDED", "FAILED", "BLOCKED", "ERROR", "CANCELLED"];
const SOURCES = [
  "LINEAR",
  "API",
  "SLACK",
  "TEAMS",
  "LOCAL",
  "SCHEDULED_AGENT",
  "WEB_APP",
  "GITHUB_ACTION",
  "CLOUD_MODE",
  "CLI",
  "JIRA",
  "SELF_IMPROVEMENT",
  "GITHUB_WEBHOOK",
  "GITLAB_WEBHOOK",
  "AZURE_DEVOPS_WEBHOOK",
  "AUTOFIX",
  "RUN_SCORER",
  "ORCHESTRATION",
  "BENCHMARK_TRIAL",
  "CREATE_BENCHMARK_TASK",
  "CUSTOM_WEBHOOK",
];
const READ = [400, 401, 404];
const CHANGE = [400, 401, 403, 404];
const NEW_RUN = { method: "POST", ok: [200], errors: CHANGE, hasTeam: true, body: { prompt: "p" } } as const;
export const SCHEDULE = { name: "n", cron_schedule: "0 0 1 1 *", enabled: false, prompt: "p" };
const FILES = { files: [{ filename: "a.txt", mime_type: "text/plain" }] };

/**
 * The sections "Networking", "Agent runs and conversations", "Agent catalog and resources" and "Scheduled agents" of
 * the API specification (§4), with its statuses. Reads return 404 instead of 403 for resources that the caller must not
 * see, so they do not list 403.
 */
export const PUBLISHED: readonly Operation[] = [
  { method: "GET", path: "/networking/egress-ranges", ok: [200], errors: [401], hasTeam: true },

  { ...NEW_RUN, path: "/agent/run" },
  { ...NEW_RUN, path: "/agent/runs" },
  {
    method: "GET",
    path: "/agent/runs",
    ok: [200],
    errors: [400, 401, 403, 404],
    hasTeam: true,
    ours: ["conversation_id"],
    query: {
      limit: { min: 1, max: 500, default: 20 },
      cursor: TEXT,
      sort_by: { enum: ["updated_at", "created_at", "title", "agent"], default: "updated_at" },
      sort_order: { enum: ["asc", "desc"], default: "desc" },
      state: { enum: STATES, many: true },
      task_status: { enum: ["running", "complete", "failed", "blocked", "cancelled"], many: true },
      name: TEXT,
      model_id: TEXT,
      creator: TEXT,
      executor: TEXT,
      source: { enum: SOURCES, many: true },
      execution_location: { enum: ["LOCAL", "REMOTE"] },
      created_after: TIME,
      created_before: TIME,
      updated_after: TIME,
      environment_id: TEXT,
      skill: TEXT,
      skill_spec: TEXT,
      schedule_id: TEXT,
      factory_uid: { many: true },
      factory_only: { is: "boolean" },
      automation_id: TEXT,
      ancestor_run_id: TEXT,
      metadata: { is: "map" },
      artifact_type: { enum: ["PLAN", "PULL_REQUEST", "SCREENSHOT", "FILE", "EXTERNAL_REFERENCE"] },
      q: TEXT,
    },
  },
  {
    method: "GET",
    path: "/agent/run-by-external-reference",
    ok: [200],
    errors: [400, 401, 404],
    query: { url: { required: true } },
  },
  { method: "GET", path: "/agent/runs/{runId}", ok: [200], errors: READ },
  { method: "GET", path: "/agent/runs/{runId}/timeline", ok: [200], errors: READ },
  { method: "GET", path: "/agent/runs/{runId}/conversation", ok: [200], errors: [...READ, 422] },
  { method: "GET", path: "/agent/runs/{runId}/transcript", ok: [302], errors: READ },
  { method: "GET", path: "/agent/runs/{runId}/harness-usage", ok: [200], errors: [401, 404] },
  { method: "POST", path: "/agent/runs/{runId}/cancel", ok: [200], errors: [...CHANGE, 409, 422], ours: ["tree"] },
  {
    method: "POST",
    path: "/agent/runs/{runId}/followups",
    ok: [200],
    errors: [...CHANGE, 422],
    body: { message: "x" },
  },
  { method: "POST", path: "/agent/runs/{runId}/interrupt", ok: [202], errors: [...CHANGE, 409, 422] },
  { method: "POST", path: "/agent/runs/{runId}/attachments/prepare", ok: [200], errors: CHANGE, body: FILES },
  {
    method: "POST",
    path: "/agent/conversations/{conversationId}/followups",
    ok: [200],
    errors: [...CHANGE, 422],
    body: { message: "x" },
  },
  {
    method: "POST",
    path: "/agent/conversations/{conversationId}/attachments/prepare",
    ok: [200],
    errors: CHANGE,
    body: FILES,
  },
  { method: "POST", path: "/agent/conversations/{conversationId}/interrupt", ok: [202], errors: [...CHANGE, 409, 422] },
  { method: "GET", path: "/agent/conversations/{conversationId}", ok: [200], errors: [...READ, 422] },
  { method: "GET", path: "/agent/conversations/{conversationId}/transcript", ok: [302], errors: READ },
  {
    method: "GET",
    path: "/agent/conversations/{conversationId}/screenshots/{screenshotUid}/download",
    ok: [302],
    errors: READ,
  },
  {
    method: "GET",
    path: "/agent/conversations/{conversationId}/block-snapshot",
    ok: [200, 302],
    errors: READ,
    query: { redirect: { is: "boolean", default: true } },
  },

  {
    method: "GET",
    path: "/agent",
    ok: [200],
    errors: [400, 401],
    hasTeam: true,
    query: {
      repo: TEXT,
      refresh: { is: "boolean" },
      sort_by: { enum: ["name", "last_run"], default: "name" },
      include_malformed_skills: { is: "boolean" },
    },
  },
  { method: "GET", path: "/agent/connected-self-hosted-workers", ok: [200], errors: [401], hasTeam: true },
  {
    method: "GET",
    path: "/agent/environments",
    ok: [200],
    errors: [401],
    hasTeam: true,
    query: { sort_by: { enum: ["name", "last_updated"], default: "last_updated" } },
  },
  { method: "GET", path: "/agent/models", ok: [200], errors: [401] },
  { method: "GET", path: "/agent/artifacts/{artifactUid}", ok: [200], errors: CHANGE },
  { method: "GET", path: "/agent/artifacts/{artifactUid}/download", ok: [302], errors: CHANGE },
  { method: "POST", path: "/agent/identities", ok: [201], errors: [400, 401, 403], hasTeam: true, body: { name: "n" } },
  {
    method: "GET",
    path: "/agent/identities",
    ok: [200],
    errors: [400, 401],
    hasTeam: true,
    query: { factory_uid: TEXT },
  },
  { method: "GET", path: "/agent/identities/{uid}", ok: [200], errors: [401, 404] },
  { method: "PUT", path: "/agent/identities/{uid}", ok: [200], errors: [...CHANGE, 409], body: { description: "d" } },
  { method: "DELETE", path: "/agent/identities/{uid}", ok: [204], errors: CHANGE },

  { method: "POST", path: "/agent/schedules", ok: [201], errors: [400, 401, 403], hasTeam: true, body: SCHEDULE },
  { method: "GET", path: "/agent/schedules", ok: [200], errors: [401], hasTeam: true },
  { method: "GET", path: "/agent/schedules/{scheduleId}", ok: [200], errors: CHANGE },
  { method: "PUT", path: "/agent/schedules/{scheduleId}", ok: [200], errors: CHANGE, body: SCHEDULE },
  { method: "DELETE", path: "/agent/schedules/{scheduleId}", ok: [200], errors: [401, 403, 404] },
  { method: "POST", path: "/agent/schedules/{scheduleId}/pause", ok: [200], errors: [401, 403, 404] },
  { method: "POST", path: "/agent/schedules/{scheduleId}/resume", ok: [200], errors: [401, 403, 404] },
];

/** Returns what the API document declares for the same operation, in the same format; undefined if it is missing. */
export function documented(
  { components, paths }: ApiDocument,
  { method, path, query = {}, errors, ours = [] }: Operation,
) {
  const operation = paths[`/api/v1${path}`]?.[method.toLowerCase()];
  if (!operation) return undefined;
  const resolved = (schema: any): any => (schema?.$ref ? components.schemas[schema.$ref.split("/").at(-1)] : schema);
  const given: any[] = operation.parameters ?? [];
  const statuses = Object.keys(operation.responses).map(Number);
  const params = given
    .filter((one) => one.in === "query" && !ours.includes(one.name))
    .map((one): [string, Param] => {
      const schema = resolved(one.schema);
      const value = schema.type === "array" ? resolved(schema.items) : schema;
      return [
        one.name,
        {
          ...(schema.type === "array" && { many: true }),
          ...(one.required && { required: true }),
          ...(value.enum && query[one.name]?.enum && { enum: value.enum }),
          ...(schema.default !== undefined && { default: schema.default }),
          ...(value.minimum !== undefined && { min: value.minimum }),
          ...(value.maximum !== undefined && { max: value.maximum }),
          ...(value.type === "boolean" && { is: "boolean" }),
          ...(value.format === "date-time" && { is: "date-time" }),
          ...(value.type === "object" && { is: "map" }),
        },
      ];
    });
  return {
    ok: statuses.filter((status) => status < 400).toSorted((a, b) => a - b),
    errors: statuses.filter((status) => errors.includes(status)).toSorted((a, b) => a - b),
    hasTeam: given.some((one) => one.in === "header" && one.name === "X-Service-Team-Uid"),
    query: Object.fromEntries(params),
  };
}

/** Returns accepted and rejected values of a parameter. */
export function valuesOf(param: Param): { readonly good: readonly string[]; readonly bad: readonly string[] } {
  if (param.enum) return { good: param.enum, bad: ["none-of-these", ""] };
  if (param.is === "boolean") return { good: ["true", "false"], bad: ["1", "TRUE", ""] };
  if (param.is === "date-time")
    return {
      good: ["2026-11-20T10:00:00Z", "2026-11-20T10:00:00.123%2B02:00"],
      bad: ["yesterday", "2026-02-30T00:00:00Z", ""],
    };
  if (param.max !== undefined)
    return {
      good: [String(param.min), String(param.max)],
      bad: [String(param.min! - 1), String(param.max + 1), "x", "1.5", ""],
    };
  return { good: [], bad: [] };
}
