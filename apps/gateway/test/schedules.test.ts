import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { OTHER_TEAM, RUN, TEAM, USER } from "./support/people.ts";
import { at, CREATED, UPDATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const PATH = "/api/v1/agent/schedules";
const UID = "0198c2d0-0000-7000-8000-00000000c001";
const ENVIRONMENT = "abcdefghijklmnopqrstuv";
const profile = { type: "user", uid: USER, display_name: "Ada", email: "ada@example.com" };

const schedule = {
  uid: UID,
  name: "Nightly",
  cronSchedule: "0 3 * * *",
  timeZone: "Europe/Berlin",
  enabled: true,
  prompt: "Look.",
  agentConfig: { environment_id: ENVIRONMENT },
  agentUid: RUN,
  mode: "plan",
  metadata: { a: "b" },
  overlapPolicy: "skip",
  catchUpSeconds: 60,
  ownerType: "team",
  ownerUid: TEAM,
  createdBy: USER,
  updatedBy: "gone",
  createdAt: at(CREATED),
  updatedAt: at(UPDATED),
  lastRanAt: at(CREATED),
  nextRunAt: at(UPDATED),
  lastSpawnError: "No such model.",
};
const shown = {
  id: UID,
  name: "Nightly",
  cron_schedule: "0 3 * * *",
  time_zone: "Europe/Berlin",
  enabled: true,
  prompt: "Look.",
  agent_config: { environment_id: ENVIRONMENT },
  agent_uid: RUN,
  mode: "plan",
  metadata: { a: "b" },
  overlap_policy: "skip",
  catch_up_seconds: 60,
  created_at: CREATED,
  updated_at: UPDATED,
  history: { last_ran: CREATED, next_run: UPDATED },
  last_spawn_error: "No such model.",
  environment: { name: "web" },
  created_by: profile,
  scope: { type: "Team", uid: TEAM },
};
/** A schedule without any optional field. */
const least = {
  ...schedule,
  timeZone: undefined,
  agentConfig: undefined,
  agentUid: undefined,
  mode: "",
  metadata: {},
  overlapPolicy: "allow",
  ownerType: "user",
  ownerUid: USER,
  lastRanAt: undefined,
  nextRunAt: undefined,
  lastSpawnError: undefined,
  enabled: false,
};
const leastShown = {
  ...shown,
  time_zone: null,
  mode: "normal",
  metadata: {},
  overlap_policy: "allow",
  scope: { type: "User", uid: USER },
  history: { last_ran: null, next_run: null },
  last_spawn_error: null,
  enabled: false,
  agent_config: undefined,
  agent_uid: undefined,
  environment: undefined,
};
const environments = { listEnvironments: { environments: [{ uid: ENVIRONMENT, config: { name: "web" } }] } };
const BODY = { name: "Nightly", cron_schedule: "0 3 * * *", prompt: "Look." };
const PUT = { ...BODY, enabled: true };
const FULL = {
  ...BODY,
  agent_config: { name: "c" },
  agent_uid: RUN,
  mode: "plan",
  metadata: { a: "b" },
  time_zone: "Europe/Berlin",
  overlap_policy: "buffer_one",
  catch_up_seconds: 0,
  enabled: false,
};
const FULL_ASKED = {
  cronSchedule: "0 3 * * *",
  prompt: "Look.",
  agentConfig: { name: "c" },
  agentUid: RUN,
  mode: "plan",
  metadata: { a: "b" },
  timeZone: "Europe/Berlin",
  overlapPolicy: "buffer_one",
  catchUpSeconds: 0,
  enabled: false,
};
const asked = () => api.calls.find(({ method }) => /Schedule|setEnabled|listSlots/.test(method))!.request;

describe("a schedule is returned", () => {
  test.each([
    ["whole", schedule, shown],
    ["with the least", least, leastShown],
  ])("%s", async (_what, given, expected) => {
    api.respondWith({ ...environments, getSchedule: { schedule: given } });
    expect((await api.call("GET", `${PATH}/${UID}`)).body).toEqual(JSON.parse(JSON.stringify(expected)));
    expect(asked()).toMatchObject({ uid: UID });
  });
  test("in the list of the active team, in the order given", async () => {
    api.respondWith({ ...environments, listSchedules: { schedules: [schedule, least] } });
    const { body } = await api.call("GET", PATH, { headers: { "x-service-team-uid": OTHER_TEAM } });
    expect(body).toEqual({ schedules: [shown, JSON.parse(JSON.stringify(leastShown))] });
    expect(asked()).toMatchObject({ teamUid: OTHER_TEAM });
  });
});

describe("creating", () => {
  const create = (body: unknown, more: { key?: string; headers?: Record<string, string> } = {}) =>
    api.call("POST", PATH, { body, ...more });
  test.each<[string, object, object]>([
    [
      "what is needed, for the team",
      BODY,
      {
        name: "Nightly",
        cronSchedule: "0 3 * * *",
        prompt: "Look.",
        enabled: true,
        mode: "",
        metadata: {},
        overlapPolicy: "",
        ownerType: "team",
        ownerUid: TEAM,
      },
    ],
    [
      "a skill without a prompt",
      { name: "n", cron_schedule: "* * * * *", agent_config: { skill_spec: "a/b:c" } },
      { prompt: "", agentConfig: { skill_spec: "a/b:c" } },
    ],
    ["everything", FULL, FULL_ASKED],
    ["unknown members", { ...BODY, unknown: 1 }, { name: "Nightly" }],
    ["a personal one", { ...BODY, team: false }, { ownerType: "user", ownerUid: USER }],
  ])("requests %s", async (_what, body, expected) => {
    api.respondWith({ ...environments, createSchedule: { schedule } });
    const { status, body: made } = await create(body);
    expect([status, made]).toEqual([201, shown]);
    expect(asked().schedule).toMatchObject(expected);
  });
  test("passes on the Idempotency-Key", async () => {
    api.respondWith({ ...environments, createSchedule: { schedule } });
    await create(BODY, { headers: { "idempotency-key": "k" } });
    expect(asked().idempotencyKey).toBe("k");
  });
  test.each<[string, number, string, object]>([
    ["of_two_teams", 400, "team_required", BODY],
    ["agent", 400, "personal_schedule_of_agent", { ...BODY, team: false }],
  ])("by %s is a %i", async (key, status, reason, body) => {
    api.respondWith({});
    expect((await create(body, { key })).body).toMatchObject({ status, reason });
    expect(api.calls).toEqual([]);
  });
  test("without a team is personal", async () => {
    api.respondWith({ ...environments, createSchedule: { schedule } });
    await create(BODY, { key: "of_no_team" });
    expect(asked().schedule).toMatchObject({ ownerType: "user", ownerUid: USER });
  });
  test("returns the same 404 for every team that the caller is not in", async () => {
    api.respondWith({});
    expect((await create(BODY, { headers: { "x-service-team-uid": RUN } })).body).toMatchObject({
      status: 404,
      reason: "team_not_found",
    });
  });
  const faults = ["cron_invalid", "time_zone_unknown", "prompt_required", "config_conflict", "agent_needs_team"].map(
    (reason) => upstreamError("invalid_argument", reason),
  );
  testUpstreamErrors(
    () => api,
    () => create(BODY),
    [
      "createSchedule",
      ...faults,
      upstreamError("not_found", "agent_not_found"),
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("conflict", "idempotency_mismatch"),
    ],
  );
});

const wrong: object[] = [
  { name: "" },
  { name: "x".repeat(201) },
  { name: 1 },
  { name: undefined },
  { cron_schedule: "" },
  { cron_schedule: undefined },
  { cron_schedule: "x".repeat(201) },
  { enabled: "yes" },
  { prompt: 5 },
  { agent_config: "x" },
  { agent_config: { idle_timeout_minutes: 61 } },
  { agent_uid: 1 },
  { mode: "hasty" },
  { metadata: { "a b": "c" } },
  { metadata: { a: 1 } },
  { metadata: { a: "x".repeat(257) } },
  { metadata: Object.fromEntries(Array.from({ length: 21 }, (_one, n) => [`k${n}`, ""])) },
  { time_zone: "" },
  { time_zone: 1 },
  { overlap_policy: "queue" },
  { catch_up_seconds: -1 },
  { catch_up_seconds: 0.5 },
  { catch_up_seconds: 40_000_000 },
];
testRejectedBeforeUpstreams(
  () => api,
  400,
  wrong.flatMap(
    (one) =>
      [
        ["POST", PATH, { ...BODY, ...one }],
        ["PUT", `${PATH}/${UID}`, { ...PUT, ...one }],
      ] as const,
  ),
);
testRejectedBeforeUpstreams(
  () => api,
  400,
  ["enabled", "prompt"].map((name) => ["PUT", `${PATH}/${UID}`, { ...PUT, [name]: undefined }] as const),
);
testRejectedBeforeUpstreams(
  () => api,
  404,
  ["no-uid", "0", `${UID}0`].flatMap(
    (id) =>
      [
        ["GET", `${PATH}/${id}`],
        ["PUT", `${PATH}/${id}`, PUT],
        ["DELETE", `${PATH}/${id}`],
        ["POST", `${PATH}/${id}/pause`],
        ["POST", `${PATH}/${id}/resume`],
        ["GET", `${PATH}/${id}/slots`],
      ] as const,
  ),
);

describe("replacing", () => {
  test.each<[string, object, object]>([
    ["what is needed", PUT, { uid: UID, name: "Nightly", enabled: true, mode: "", metadata: {}, overlapPolicy: "" }],
    ["everything", FULL, { uid: UID, ...FULL_ASKED }],
    ["an empty configuration, which clears it", { ...PUT, agent_config: {} }, { agentConfig: {} }],
    ["no zone", { ...PUT, time_zone: null, prompt: "" }, { prompt: "" }],
  ])("requests %s", async (_what, body, expected) => {
    api.respondWith({ ...environments, replaceSchedule: { schedule } });
    const answer = await api.call("PUT", `${PATH}/${UID}`, { body });
    expect([answer.status, answer.body]).toEqual([200, shown]);
    expect(asked().schedule).toMatchObject(expected);
  });
  test("without a configuration leaves the configuration unchanged", async () => {
    api.respondWith({ ...environments, replaceSchedule: { schedule } });
    await api.call("PUT", `${PATH}/${UID}`, { body: PUT });
    expect([asked().schedule.agentConfig, asked().schedule.timeZone, asked().schedule.catchUpSeconds]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
  testUpstreamErrors(
    () => api,
    () => api.call("PUT", `${PATH}/${UID}`, { body: PUT }),
    [
      "replaceSchedule",
      upstreamError("not_found", "schedule_not_found"),
      upstreamError("invalid_argument", "cron_invalid"),
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("not_found", "agent_not_found"),
    ],
  );
});

describe.each([
  ["pause", false],
  ["resume", true],
])("%s", (verb, enabled) => {
  const ask = () => api.call("POST", `${PATH}/${UID}/${verb}`);
  test("returns the changed schedule", async () => {
    api.respondWith({ ...environments, setEnabled: { schedule } });
    const { status, body } = await ask();
    expect([status, body]).toEqual([200, shown]);
    expect(asked()).toMatchObject({ uid: UID, enabled });
  });
  testUpstreamErrors(() => api, ask, [
    "setEnabled",
    upstreamError("not_found", "schedule_not_found"),
    upstreamError("permission_denied", "not_authorized"),
  ]);
});

describe("deleting", () => {
  const ask = () => api.call("DELETE", `${PATH}/${UID}`);
  test("returns success", async () => {
    api.respondWith({ deleteSchedule: {} });
    const { status, body } = await ask();
    expect([status, body]).toEqual([200, { success: true }]);
    expect(asked()).toMatchObject({ uid: UID });
  });
  testUpstreamErrors(() => api, ask, [
    "deleteSchedule",
    upstreamError("not_found", "schedule_not_found"),
    upstreamError("permission_denied", "not_authorized"),
  ]);
});
testUpstreamErrors(
  () => api,
  () => api.call("GET", `${PATH}/${UID}`),
  [
    "getSchedule",
    upstreamError("not_found", "schedule_not_found"),
    upstreamError("permission_denied", "not_authorized"),
  ],
);

describe("the slots", () => {
  const fired = { slotAt: at(CREATED), state: "fired", reason: "", message: "", runUid: RUN, decidedAt: at(UPDATED) };
  const skipped = { slotAt: at(CREATED), state: "skipped", reason: "spawn_failed", message: "No.", runUid: "" };
  test("are returned with their outcomes", async () => {
    api.respondWith({ listSlots: { slots: [fired, skipped], nextPageToken: "next" } });
    const { body } = await api.call("GET", `${PATH}/${UID}/slots?state=fired&state=skipped&limit=2&cursor=c`);
    expect(body).toEqual({
      slots: [
        { slot_at: CREATED, state: "fired", run_id: RUN, decided_at: UPDATED },
        { slot_at: CREATED, state: "skipped", reason: "spawn_failed", message: "No.", decided_at: null },
      ],
      page_info: { has_next_page: true, next_cursor: "next" },
    });
    expect(asked()).toMatchObject({ scheduleUid: UID, states: ["fired", "skipped"], pageSize: 2, pageToken: "c" });
  });
  test("are returned in pages of fifty", async () => {
    api.respondWith({ listSlots: { slots: [], nextPageToken: "" } });
    expect((await api.call("GET", `${PATH}/${UID}/slots`)).body).toEqual({
      slots: [],
      page_info: { has_next_page: false },
    });
    expect(asked()).toMatchObject({ states: [], pageSize: 50, pageToken: "" });
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    ["state=gone", "limit=0", "limit=501", "limit=x", "cursor="].map(
      (query) => ["GET", `${PATH}/${UID}/slots?${query}`] as const,
    ),
  );
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${PATH}/${UID}/slots`),
    [
      "listSlots",
      upstreamError("not_found", "schedule_not_found"),
      upstreamError("invalid_argument", "invalid_cursor"),
    ],
  );
});
