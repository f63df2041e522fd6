import { randomUUID } from "node:crypto";
import type { Operation, Param } from "./published-api.ts";

const TIME: Param = { is: "date-time" };
const TEXT: Param = {};
const MANY: Param = { many: true };
const NONE: Param = { many: true, default: [] };
const NO: Param = { is: "boolean", default: false };
const PAGE = { limit: { min: 1, max: 100, default: 50 }, cursor: TEXT } as const;
const READ = [401, 403, 404];
const CHANGE = [400, 401, 403, 404];
const SCORERS = "/factory/{uid}/scorers";
const SCORER = `${SCORERS}/{scorer_uid}`;
const BENCHMARKS = "/factory/{factory_uid}/benchmarks";
const SUITE = `${BENCHMARKS}/{suite_uid}`;
const TASK = `${SUITE}/tasks/{task_uid}`;
const RUN = `${SUITE}/runs/{run_uid}`;
const LABELS = [
  { value: "pass", score: 1 },
  { value: "fail", score: 0 },
];
const NEW_SCORER = {
  name: "n",
  scoring_prompt: "p",
  model_id: "scripted",
  scope_mode: "all_agents",
  allowed_classifications: LABELS,
  threshold: 0.5,
};
const NEW_TASK = { title: "t", prompt: "p", success_criteria: "c" };

/** The sections "Scorers" and "Benchmarks" of the API specification (§4), with the statuses of its §7. */
export const PUBLISHED_OF_SCORING: readonly Operation[] = [
  { method: "POST", path: SCORERS, ok: [201], errors: CHANGE, body: NEW_SCORER },
  {
    method: "GET",
    path: SCORERS,
    ok: [200],
    errors: CHANGE,
    query: { start_date: TIME, end_date: TIME },
    ours: ["include_managed", "recent_outcomes_limit"],
  },
  { method: "PATCH", path: SCORER, ok: [200], errors: CHANGE, body: { name: "n" } },
  { method: "DELETE", path: SCORER, ok: [204], errors: READ },
  {
    method: "GET",
    path: `${SCORER}/results`,
    ok: [200],
    errors: CHANGE,
    query: { ...PAGE, include_reasons: NO, run_id: MANY },
  },
  {
    method: "GET",
    path: `${SCORER}/metrics`,
    ok: [200],
    errors: CHANGE,
    query: {
      start_date: TIME,
      end_date: TIME,
      group_by_period: { enum: ["day", "week", "month"], default: "day" },
      include_cost: NO,
    },
  },
  {
    method: "POST",
    path: "/factory/{factory_uid}/runs/{run_id}/scorer_dispatch",
    ok: [200],
    errors: CHANGE,
    body: { scorer_uids: [randomUUID()] },
  },
  {
    method: "POST",
    path: "/factory/{factory_uid}/scorers/{scorer_uid}/dispatch",
    ok: [200],
    errors: CHANGE,
    body: { run_ids: [randomUUID()] },
  },
  { method: "GET", path: "/factory/runs/{run_id}/scores", ok: [200], errors: [401, 404] },

  {
    method: "POST",
    path: BENCHMARKS,
    ok: [200, 201],
    errors: [...CHANGE, 409],
    body: { name: "n", agent_uid: randomUUID(), factory_agent_type: "a" },
  },
  { method: "GET", path: BENCHMARKS, ok: [200], errors: CHANGE, query: PAGE },
  { method: "GET", path: SUITE, ok: [200], errors: READ },
  { method: "PATCH", path: SUITE, ok: [200], errors: CHANGE, body: { name: "n" } },
  { method: "DELETE", path: SUITE, ok: [204], errors: READ },
  { method: "POST", path: `${SUITE}/tasks`, ok: [200, 201], errors: [...CHANGE, 409], body: NEW_TASK },
  { method: "GET", path: TASK, ok: [200], errors: READ },
  { method: "PATCH", path: TASK, ok: [200], errors: [...CHANGE, 409], body: { title: "t" } },
  { method: "DELETE", path: TASK, ok: [204], errors: READ },
  { method: "POST", path: `${SUITE}/runs`, ok: [201], errors: CHANGE, body: { repetition_count: 1 } },
  { method: "GET", path: `${SUITE}/runs`, ok: [200], errors: CHANGE, query: { ...PAGE, state: NONE, include: NONE } },
  { method: "GET", path: RUN, ok: [200], errors: CHANGE, query: { include: NONE } },
  { method: "POST", path: `${RUN}/cancel`, ok: [200], errors: CHANGE },
  {
    method: "GET",
    path: `${RUN}/results`,
    ok: [200],
    errors: CHANGE,
    query: { task_uid: NONE, tag: NONE, configuration_uid: NONE, scorer_uid: NONE, include: NONE },
  },
  {
    method: "GET",
    path: `${RUN}/trials`,
    ok: [200],
    errors: CHANGE,
    query: { ...PAGE, configuration_uid: MANY, state: MANY, agent_run_id: TEXT, include: NONE },
    ours: ["scorer", "scorer_id", "scorer_uid"],
  },
  {
    method: "GET",
    path: `${RUN}/trials/{trial_uid}`,
    ok: [200],
    errors: CHANGE,
    query: { include: NONE },
    ours: [
      "scorer",
      "scorer_id",
      "scorer_uid",
      "configuration_uid",
      "task_uid",
      "tag",
      "state",
      "agent_run_id",
      "limit",
      "cursor",
    ],
  },
];
