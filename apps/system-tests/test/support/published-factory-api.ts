import type { Operation, Param } from "./published-api.ts";

const TIME: Param = { is: "date-time" };
const TEXT: Param = {};
const NO: Param = { is: "boolean", default: false };
const PAGE = { limit: { min: 1, max: 100, default: 50 }, cursor: TEXT } as const;
const READ = [401, 403, 404];
const CHANGE = [400, 401, 403, 404];
const STAGES = ["TRIAGE", "SPEC", "IMPLEMENT", "REVIEW", "COMPLETE", "CANCELLED"];
const SCHEMAS = "/factory-files/schemas";

/**
 * The sections "Factories", "Factory tasks", "Tracked factory branches" and "Factory file schemas" of the API
 * specification (§4), with the statuses of its §7.
 */
export const PUBLISHED_OF_FACTORIES: readonly Operation[] = [
  {
    method: "GET",
    path: "/factory",
    ok: [200],
    errors: [400, 401],
    hasTeam: true,
    query: { ...PAGE, team_uid: TEXT, search: TEXT },
    ours: ["filter_team_uid"],
  },
  { method: "GET", path: "/factory/{uid}", ok: [200], errors: READ },

  {
    method: "POST",
    path: "/factory/{uid}/tasks",
    ok: [201],
    errors: [...CHANGE, 409],
    body: { title: "t", conversation_id: "c" },
  },
  {
    method: "GET",
    path: "/factory/{uid}/tasks",
    ok: [200],
    errors: CHANGE,
    query: {
      ...PAGE,
      stage: { enum: STAGES, many: true },
      created_by: { many: true },
      q: TEXT,
      created_after: TIME,
      created_before: TIME,
      updated_after: TIME,
      sort_by: { enum: ["created_at", "updated_at"], default: "created_at" },
      sort_order: { enum: ["asc", "desc"], default: "desc" },
      full_list: NO,
      include_current_run: NO,
    },
  },
  { method: "GET", path: "/factory/{uid}/tasks/{task_uid}", ok: [200], errors: READ },
  { method: "PATCH", path: "/factory/{uid}/tasks/{task_uid}", ok: [200], errors: CHANGE, body: {} },
  { method: "DELETE", path: "/factory/{uid}/tasks/{task_uid}", ok: [204], errors: READ },
  { method: "POST", path: "/factory/{uid}/tasks/{task_uid}/cancel", ok: [200], errors: [...CHANGE, 409, 422] },
  {
    method: "GET",
    path: "/factory/{uid}/task-by-conversation",
    ok: [200],
    errors: CHANGE,
    query: { conversation_id: { required: true } },
  },
  {
    method: "GET",
    path: "/factory/{uid}/task-by-run",
    ok: [200],
    errors: CHANGE,
    query: { run_id: { required: true } },
  },
  { method: "POST", path: "/factory/{uid}/runs", ok: [201], errors: [...CHANGE, 409], body: { prompt: "p" } },

  { method: "GET", path: "/factory/{uid}/branches/{branch_uid}", ok: [200], errors: READ },
  { method: "DELETE", path: "/factory/{uid}/branches/{branch_uid}", ok: [204], errors: [...READ, 409] },
  { method: "POST", path: "/factory/{uid}/branches/{branch_uid}/apply", ok: [200], errors: [...CHANGE, 409] },

  { method: "GET", path: SCHEMAS, ok: [200, 304], errors: [401] },
  { method: "GET", path: `${SCHEMAS}/{schema_version}`, ok: [200, 304], errors: [401, 404] },
  { method: "GET", path: `${SCHEMAS}/{schema_version}/{document}`, ok: [200, 304], errors: [401, 404] },
];
