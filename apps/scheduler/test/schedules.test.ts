import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Caller } from "@millwright/caller";
import { EVENT_TABLES_SQL } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError, missingTables } from "@millwright/testing";
import {
  A_SCHEDULE,
  OTHER_TEAM,
  OWNER,
  RUN,
  startWorld,
  OTHER_TEAM_OWNER,
  TEAM,
  VIEWER,
  type Settings,
  type World,
} from "./setup.ts";

let w: World;
beforeAll(async () => void (w = await startWorld()));
afterAll(() => w.stop());
beforeEach(() => w.reset());

const replace = async (uid: string, settings: Settings, caller: Caller = OWNER) =>
  (await w.schedules.replaceSchedule({ schedule: { ...A_SCHEDULE, ...settings, uid } }, call(caller))).schedule!;
const names = async (caller: Caller, teamUid = "") =>
  (await w.schedules.listSchedules({ teamUid }, call(caller))).schedules.map(({ name }) => name);
const seconds = (time: string): bigint => BigInt(Date.parse(time) / 1_000);

test("its tables are those of the event log", async () =>
  expect(await missingTables(w.t.database.sql, EVENT_TABLES_SQL)).toEqual([]));

describe("a new schedule", () => {
  test("has the defaults, its creator, and the first slot after now", async () => {
    const created = await w.aSchedule({ cronSchedule: "0 9 * * *", timeZone: "Europe/Berlin" });
    expect(created).toMatchObject({
      name: "Nightly",
      cronSchedule: "0 9 * * *",
      timeZone: "Europe/Berlin",
      enabled: true,
      prompt: "Look.",
      mode: "normal",
      overlapPolicy: "allow",
      catchUpSeconds: 86_400,
      ownerType: "team",
      ownerUid: TEAM,
      createdBy: OWNER.principal.uid,
      updatedBy: OWNER.principal.uid,
      nextRunAt: { seconds: seconds("2026-11-21T08:00:00Z") },
    });
    expect([created.lastRanAt, created.lastSpawnError, created.agentConfig, created.agentUid]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(await w.read(created.uid)).toEqual(created);
    expect(await w.eventTypes()).toEqual(["schedule.created"]);
  });
  test("that is not enabled does not come due", async () =>
    expect((await w.aSchedule({ enabled: false })).nextRunAt).toBeUndefined());
  test("requires no prompt with a skill", async () => {
    for (const agentConfig of [{ skill_spec: "a/b:c/SKILL.md" }, { skills: ["a/b:c/SKILL.md"] }] as JsonObject[])
      expect((await w.aSchedule({ prompt: "", agentConfig })).prompt).toBe("");
  });
  test("of a user is visible to no other user", async () => {
    const { uid } = await w.aSchedule({ ownerType: "user", ownerUid: OWNER.principal.uid, name: "mine" });
    expect([await names(OWNER), await names(OWNER, TEAM), await names(VIEWER)]).toEqual([["mine"], [], []]);
    await expect(w.schedules.getSchedule({ uid }, call(VIEWER))).rejects.toEqual(
      domainError({ reason: "schedule_not_found" }),
    );
    await expect(w.aSchedule({ ownerType: "user", ownerUid: VIEWER.principal.uid })).rejects.toEqual(
      domainError({ reason: "user_not_found" }),
    );
  });
  test("may name only an environment that runs of its owner can use", async () => {
    const personal: Settings = { ownerType: "user", ownerUid: OWNER.principal.uid };
    const agentConfig = { environment_id: "e-1" };
    await expect(w.aSchedule({ agentConfig })).rejects.toEqual(
      domainError({ kind: "not_found", reason: "environment_not_found" }),
    );
    w.environments.add(`team ${TEAM} e-1`);
    expect((await w.aSchedule({ agentConfig })).agentConfig).toEqual(agentConfig);
    await expect(w.aSchedule({ agentConfig, ...personal })).rejects.toEqual(
      domainError({ reason: "environment_not_found" }),
    );
  });

  test("may name only an agent that the team has", async () => {
    const agentUid = newUid();
    await expect(w.aSchedule({ agentUid })).rejects.toEqual(
      domainError({ kind: "not_found", reason: "agent_not_found" }),
    );
    w.agents.add(agentUid);
    expect((await w.aSchedule({ agentUid })).agentUid).toBe(agentUid);
  });
  test("is created once for repeated requests with one key; a repeat returns it as it was created", async () => {
    const create = (name: string) =>
      w.schedules.createSchedule({ schedule: { ...A_SCHEDULE, name }, idempotencyKey: "k" }, call(OWNER));
    const first = await create("first");
    await replace(first.schedule!.uid, { name: "first", enabled: false });
    expect(await create("first")).toEqual(first);
    await expect(create("second")).rejects.toEqual(domainError({ kind: "conflict", reason: "idempotency_mismatch" }));
    expect(await names(OWNER)).toEqual(["first"]);
  });
  test("is returned to a repeated request after its agent and environment were deleted", async () => {
    const agentUid = newUid();
    w.agents.add(agentUid);
    w.environments.add(`team ${TEAM} e-1`);
    const create = async () =>
      (
        await w.schedules.createSchedule(
          { schedule: { ...A_SCHEDULE, agentUid, agentConfig: { environment_id: "e-1" } }, idempotencyKey: "k" },
          call(OWNER),
        )
      ).schedule!;
    const first = await create();
    w.agents.clear();
    w.environments.clear();
    await w.advance(5);
    expect(await create()).toEqual(first);
  });
  test.each<[string, Settings]>([
    ["name_invalid", { name: "  " }],
    ["name_invalid", { name: "x".repeat(201) }],
    ["cron_invalid", { cronSchedule: "@daily" }],
    ["cron_invalid", { cronSchedule: "* * * * * *" }],
    ["cron_invalid", { cronSchedule: "0 0 30 2 *" }],
    ["time_zone_unknown", { timeZone: "Mars/Olympus" }],
    ["prompt_required", { prompt: " " }],
    ["prompt_required", { prompt: "", agentConfig: { skills: [] } }],
    ["config_conflict", { agentConfig: { skill_spec: "a/b:c", skills: ["a/b:c"] } }],
    ["mode_unknown", { mode: "hasty" }],
    ["overlap_policy_unknown", { overlapPolicy: "queue" }],
    ["catch_up_invalid", { catchUpSeconds: -1 }],
    ["catch_up_invalid", { catchUpSeconds: 400 * 86_400 }],
    ["metadata_invalid", { metadata: { "a b": "c" } }],
    ["metadata_invalid", { metadata: { a: "x".repeat(257) } }],
    ["metadata_invalid", { metadata: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`k${n}`, ""])) }],
    ["agent_needs_team", { ownerType: "user", ownerUid: OWNER.principal.uid, agentUid: newUid() }],
    ["invalid_text", { prompt: "nul \0" }],
    ["owner_invalid", { ownerType: "factory" }],
  ])("is refused: %s", async (reason, settings) => {
    await expect(w.aSchedule(settings)).rejects.toEqual(domainError({ kind: "invalid_argument", reason }));
    expect(await w.rows("SELECT 1 FROM schedules")).toEqual([]);
  });
});

test("lists schedules by case-insensitive name, of one team or of all teams", async () => {
  for (const name of ["beta", "Alpha", "gamma", "alpha"]) await w.aSchedule({ name });
  await w.aSchedule({ name: "theirs", ownerUid: OTHER_TEAM }, OTHER_TEAM_OWNER);
  expect((await names(OWNER)).map((name) => name.toLowerCase())).toEqual(["alpha", "alpha", "beta", "gamma"]);
  expect([await names(VIEWER), await names(OWNER, TEAM)]).toEqual([await names(OWNER), await names(OWNER)]);
  expect([await names(OWNER, OTHER_TEAM), await names(RUN)]).toEqual([[], []]);
});

describe("replacing", () => {
  test("replaces everything but an absent agent_config", async () => {
    const agentUid = newUid();
    w.agents.add(agentUid);
    const { uid } = await w.aSchedule({
      agentConfig: { name: "a" },
      agentUid,
      mode: "plan",
      metadata: { a: "b" },
      timeZone: "Asia/Tokyo",
      overlapPolicy: "skip",
      catchUpSeconds: 60,
    });
    await w.advance(5);
    const next = await replace(uid, { name: "Other", cronSchedule: "0 0 1 * *", prompt: "Do." });
    expect(next).toMatchObject({
      name: "Other",
      cronSchedule: "0 0 1 * *",
      prompt: "Do.",
      agentConfig: { name: "a" },
      mode: "normal",
      metadata: {},
      overlapPolicy: "allow",
      catchUpSeconds: 86_400,
      nextRunAt: { seconds: seconds("2026-12-01T00:00:00Z") },
    });
    expect([next.agentUid, next.timeZone, next.updatedAt!.seconds - next.createdAt!.seconds]).toEqual([
      undefined,
      undefined,
      5n,
    ]);
    expect((await replace(uid, { agentConfig: {} })).agentConfig).toBeUndefined();
    expect(await w.eventTypes()).toEqual(["schedule.created", "schedule.updated", "schedule.updated"]);
  });
  test("still requires a prompt or a skill", async () => {
    const { uid } = await w.aSchedule({ agentConfig: { skills: ["a/b:c"] } });
    expect((await replace(uid, { prompt: "" })).prompt).toBe("");
    await expect(replace(uid, { prompt: "", agentConfig: {} })).rejects.toEqual(
      domainError({ reason: "prompt_required" }),
    );
    expect((await w.read(uid)).agentConfig).toEqual({ skills: ["a/b:c"] });
  });
  test("with enabled false pauses and records the editor", async () => {
    const { uid } = await w.aSchedule();
    const member = { ...VIEWER, teams: OWNER.teams };
    expect(await replace(uid, { enabled: false }, member)).toMatchObject({
      enabled: false,
      createdBy: OWNER.principal.uid,
      updatedBy: member.principal.uid,
    });
    expect((await w.read(uid)).nextRunAt).toBeUndefined();
  });
  test("with an unusable environment changes nothing; an unchanged environment is not checked again", async () => {
    w.environments.add(`team ${TEAM} e-1`);
    const { uid } = await w.aSchedule({ agentConfig: { environment_id: "e-1" } });
    await expect(replace(uid, { agentConfig: { environment_id: "e-2" } })).rejects.toEqual(
      domainError({ reason: "environment_not_found" }),
    );
    expect((await w.read(uid)).agentConfig).toEqual({ environment_id: "e-1" });
    w.environments.clear();
    expect((await replace(uid, { prompt: "Do more." })).agentConfig).toEqual({ environment_id: "e-1" });
  });

  test("with an agent that is not the team's changes nothing", async () => {
    const { uid } = await w.aSchedule();
    await expect(replace(uid, { agentUid: newUid() })).rejects.toEqual(domainError({ reason: "agent_not_found" }));
    await expect(replace(uid, { agentUid: "no uid" })).rejects.toEqual(domainError({ reason: "agent_not_found" }));
    expect(await w.eventTypes()).toEqual(["schedule.created"]);
  });
});

test("pausing and resuming are idempotent", async () => {
  const { uid, updatedAt } = await w.aSchedule();
  const set = async (enabled: boolean) => (await w.schedules.setEnabled({ uid, enabled }, call(OWNER))).schedule!;
  await w.advance(10);
  expect(await set(true)).toMatchObject({ enabled: true, updatedAt });
  expect([await set(false), await set(false)]).toMatchObject([{ enabled: false }, { enabled: false }]);
  expect(await set(true)).toMatchObject({ enabled: true, nextRunAt: { seconds: seconds("2026-11-20T10:01:00Z") } });
  expect(await w.eventTypes()).toEqual(["schedule.created", "schedule.updated", "schedule.updated"]);
});

test("a deleted schedule is not found", async () => {
  const { uid } = await w.aSchedule();
  await w.schedules.deleteSchedule({ uid }, call(OWNER));
  await expect(w.schedules.getSchedule({ uid }, call(OWNER))).rejects.toEqual(
    domainError({ reason: "schedule_not_found" }),
  );
  await expect(w.schedules.deleteSchedule({ uid }, call(OWNER))).rejects.toEqual(
    domainError({ reason: "schedule_not_found" }),
  );
  expect([await names(OWNER), await w.eventTypes()]).toEqual([[], ["schedule.created", "schedule.deleted"]]);
});

describe("of a schedule", () => {
  const verbs: [string, (uid: string, caller: Caller) => Promise<unknown>][] = [
    ["replace", (uid, caller) => replace(uid, {}, caller)],
    ["delete", (uid, caller) => w.schedules.deleteSchedule({ uid }, call(caller))],
    ["pause", (uid, caller) => w.schedules.setEnabled({ uid, enabled: false }, call(caller))],
  ];
  const views: typeof verbs = [
    ["get", (uid, caller) => w.schedules.getSchedule({ uid }, call(caller))],
    ["slots", (uid, caller) => w.schedules.listSlots({ scheduleUid: uid }, call(caller))],
  ];
  test.each([...verbs, ...views])("another team and the run of an agent get not_found: %s", async (_name, ask) => {
    const { uid } = await w.aSchedule();
    for (const [id, caller] of [
      [uid, OTHER_TEAM_OWNER],
      [uid, RUN],
      [newUid(), OWNER],
      ["no uid", OWNER],
    ] as const)
      await expect(ask(id, caller)).rejects.toEqual(domainError({ kind: "not_found", reason: "schedule_not_found" }));
    expect(await w.eventTypes()).toEqual(["schedule.created"]);
  });
  test.each(verbs)("a viewer may not: %s", async (_name, ask) => {
    const { uid } = await w.aSchedule();
    await expect(ask(uid, VIEWER)).rejects.toEqual(
      domainError({ kind: "permission_denied", reason: "not_authorized" }),
    );
    expect(await w.eventTypes()).toEqual(["schedule.created"]);
  });
  test.each(views)("a viewer may: %s", async (_name, ask) => {
    const { uid } = await w.aSchedule();
    await expect(ask(uid, VIEWER)).resolves.toBeDefined();
  });
});

test("a viewer, another team and a run cannot create a schedule", async () => {
  await expect(w.aSchedule({}, VIEWER)).rejects.toEqual(domainError({ reason: "not_authorized" }));
  await expect(w.aSchedule({}, OTHER_TEAM_OWNER)).rejects.toEqual(domainError({ reason: "team_not_found" }));
  expect(await w.rows("SELECT 1 FROM schedules")).toEqual([]);
});

describe("the ledger", () => {
  test("is paged newest first and filtered by state", async () => {
    const { uid } = await w.aSchedule();
    await w.setTime("2026-11-20T10:05:00Z");
    await w.service.slots.settleNow();
    const seen: string[] = [];
    for (let pageToken = ""; ;) {
      const page = await w.schedules.listSlots({ scheduleUid: uid, pageSize: 2, pageToken }, call(OWNER));
      seen.push(...page.slots.map(({ state }) => state));
      pageToken = page.nextPageToken;
      if (pageToken === "") break;
    }
    expect(seen).toEqual(["fired", "missed", "missed", "missed", "missed"]);
    const { slots, nextPageToken } = await w.schedules.listSlots(
      { scheduleUid: uid, states: ["missed", "skipped"], pageSize: 3 },
      call(OWNER),
    );
    expect(slots.map(({ reason, runUid }) => [reason, runUid])).toEqual([
      ["superseded", ""],
      ["superseded", ""],
      ["superseded", ""],
    ]);
    await expect(w.schedules.listSlots({ scheduleUid: uid, pageToken: nextPageToken }, call(OWNER))).rejects.toEqual(
      domainError({ reason: "invalid_cursor" }),
    );
    await expect(w.schedules.listSlots({ scheduleUid: uid, states: ["gone"] }, call(OWNER))).rejects.toEqual(
      domainError({ reason: "invalid_state" }),
    );
  });
});

describe("identity events", () => {
  const drainConsumers = async () => {
    for (const consumer of w.service.consumers) await consumer.drain();
  };
  test("pause the schedules of a deleted agent, with the reason", async () => {
    const agentUid = newUid();
    w.agents.add(agentUid);
    const [its, other] = [await w.aSchedule({ agentUid }), await w.aSchedule()];
    w.gatewayFeed.push({ type: "millwright.agent.deleted.v1", entityUid: agentUid });
    await drainConsumers();
    expect(await w.read(its.uid)).toMatchObject({
      enabled: false,
      lastSpawnError: "The agent of the schedule was deleted.",
    });
    expect(await w.read(other.uid)).toEqual(other);
    expect(await w.eventTypes()).toEqual(["schedule.created", "schedule.created", "schedule.updated"]);
  });
});
