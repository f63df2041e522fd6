import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { TestWorker, type Assignment } from "./support/test-worker.ts";
import { runOf, startRun } from "./support/runs.ts";
import { aFactory, aTeam, definitionFiles, teamOf } from "./support/resources.ts";

/**
 * Tests which personal resources, other teams and other runs credentials can access. The rules are in docs/security.md.
 */
let platform: Deployment;
/** The owner of team "red", which has a factory and a worker. */
let owner: Client;
/** The owner of team "blue", who is also a viewer of "red". */
let person: Client;
let worker: TestWorker;
let factory: string;
let personal: Personal;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, timeScale: 1 });
  const admin = await connect(platform);
  [owner, person] = [await aTeam(admin, "red"), await aTeam(admin, "blue")];
  worker = await TestWorker.register(owner);
  factory = await aFactory(owner, definitionFiles("No script here."));
  personal = await createPersonalResources(person);
});
afterAll(() => platform?.remove());

type Personal = { run: string; conversation: string; schedule: string; environment: string };

async function createPersonalResources(api: Client): Promise<Personal> {
  const run = await startRun(api, "Mine.", { team: false });
  const schedule = await api.post("/agent/schedules", {
    name: "mine",
    cron_schedule: "0 0 1 1 *",
    prompt: "Mine.",
    team: false,
  });
  const environment = await api.post("/agent/environments", { config: { name: "mine" }, team: false });
  return {
    run,
    conversation: (await runOf(api, run)).conversation_id,
    schedule: schedule.id,
    environment: environment.uid,
  };
}

/** Returns a client with another key of the same person in their first team. */
const keyOf = async (api: Client, body: object): Promise<Client> =>
  api.as((await api.post(`/team/${await teamOf(api)}/keys`, { name: "k", ...body })).api_key);
const statusOf = async (api: Client, method: string, path: string, body?: unknown): Promise<number> =>
  (await api.call(method, path, body === undefined ? {} : { body })).status;

/** Operations on personal resources with the permission that each needs. */
const uses = (of: Personal): readonly (readonly [verb: string, method: string, path: string, body?: object])[] => [
  ["run.view", "GET", `/agent/runs/${of.run}`],
  ["run.view", "GET", `/agent/runs/${of.run}/events`],
  ["run.view", "GET", `/agent/conversations/${of.conversation}`],
  ["run.manage", "POST", `/agent/runs/${of.run}/followups`, { message: "Go on." }],
  ["run.manage", "POST", `/agent/conversations/${of.conversation}/followups`, { message: "Go on." }],
  ["run.create", "POST", "/agent/runs", { prompt: "Mine.", team: false }],
  ["run.create", "POST", "/agent/runs/local", { client_id: randomUUID(), command: ["true"], team: false }],
  ["run.view", "GET", `/agent/schedules/${of.schedule}`],
  ["schedule.manage", "POST", "/agent/schedules", { name: "x", cron_schedule: "0 0 1 1 *", prompt: "x", team: false }],
  ["schedule.manage", "POST", `/agent/schedules/${of.schedule}/pause`],
  ["run.view", "GET", `/agent/environments/${of.environment}`],
  ["run.manage", "POST", "/agent/environments", { config: { name: "x" }, team: false }],
  ["run.manage", "PUT", `/agent/environments/${of.environment}`, { config: { name: "mine" } }],
  ["run.manage", "POST", `/agent/runs/${of.run}/cancel`],
];

describe("a key with scopes", () => {
  test.each(["factory.view", "webhook.manage"])(
    "without rights to runs reaches no personal resource: %s",
    async (scope) => {
      const key = await keyOf(person, { scopes: [scope] });
      for (const [, method, path, body] of uses(personal))
        expect([403, 404]).toContain(await statusOf(key, method, path, body));
      for (const path of ["/agent/runs", "/agent/schedules", "/agent/environments"])
        expect(Object.values(await key.get(path))[0]).toEqual([]);
      expect(await runOf(person, personal.run)).toMatchObject({ state: "QUEUED" });
    },
  );
  test.each(["run.view", "run.create", "run.manage", "schedule.manage"])(
    "reaches personal resources as far as the scope permits: %s",
    async (scope) => {
      const key = await keyOf(person, { scopes: ["run.view", ...(scope === "run.view" ? [] : [scope])] });
      for (const [verb, method, path, body] of uses(await createPersonalResources(person))) {
        const status = await statusOf(key, method, path, body);
        const isAllowed = verb === "run.view" || verb === scope;
        expect([method, path, status < 300 ? "done" : status === 403 || status === 404 ? "refused" : status]).toEqual([
          method,
          path,
          isAllowed ? "done" : "refused",
        ]);
      }
    },
  );
  test("without factory.view gets nothing from filters by factory", async () => {
    const { run_id: run } = await owner.post(`/factory/${factory}/runs`, { prompt: "Go." });
    const [blind, seeing] = [
      await keyOf(owner, { scopes: ["run.view"] }),
      await keyOf(owner, { scopes: ["run.view", "factory.view"] }),
    ];
    for (const filter of [`factory_uid=${factory}`, "factory_only=true"]) {
      const found = async (api: Client): Promise<string[]> =>
        (await api.get(`/agent/runs?${filter}`)).runs.map((one: any) => one.run_id);
      expect([await found(blind), await found(seeing)]).toEqual([[], [run]]);
    }
    expect((await blind.get(`/agent/identities?factory_uid=${factory}`)).agents).toEqual([]);
    await owner.post(`/agent/runs/${run}/cancel`);
  });
});

test("an agent's key lists no factories of a team that is not its own", async () => {
  const agent = await owner.post("/agent/identities", { name: "bot" });
  const key = await keyOf(owner, { agent_uid: agent.uid });
  const listed = async (team: string): Promise<number> => (await key.get(`/factory?team_uid=${team}`)).factories.length;
  expect([await listed(await teamOf(owner)), await listed(await teamOf(person)), await listed(randomUUID())]).toEqual([
    1, 0, 0,
  ]);
});

describe("a team owner", () => {
  test("reaches nothing personal of a member: the member joins by invitation, and creates their keys alone", async () => {
    const [red, { principal }] = [await teamOf(owner), await person.get("/whoami")];
    expect(await owner.call("POST", `/team/${red}/members`, { body: { email: principal.email } })).toMatchObject({
      status: 409,
      body: { reason: "invitation_required" },
    });
    const invitation = await owner.post(`/team/${red}/invitations`, { email: principal.email, role: "viewer" });
    await person.post(`/invitations/${invitation.uid}/accept`);
    expect(
      await owner.call("POST", `/team/${red}/keys`, { body: { name: "trap", user_uid: principal.uid } }),
    ).toMatchObject({ status: 403 });
    const ids = Object.values(personal);
    for (const [, method, path, body] of uses(personal).filter(([, , used]) => ids.some((id) => used.includes(id))))
      expect(await statusOf(owner, method, path, body)).toBe(404);
  });
  test("cannot use the first key of a member that was shown to them", async () => {
    const { api_key: first } = await owner.post(`/team/${await teamOf(owner)}/members`, {
      email: `${randomUUID()}@example.com`,
    });
    const own = await keyOf(owner.as(first), {});
    const mine = await startRun(own, "Mine.", { team: false });
    for (const api of [owner.as(first), await keyOf(owner.as(first), {})]) {
      expect(await statusOf(api, "GET", `/agent/runs/${mine}`)).toBe(404);
      expect(await statusOf(api, "POST", `/agent/runs/${mine}/followups`, { message: "x" })).toBe(404);
    }
    expect(await runOf(own, mine)).toMatchObject({ state: "QUEUED" });
  });
});

test("everyone with rights in two teams can create a key for both, in which the team header chooses", async () => {
  const both = await keyOf(person, { all_teams: true });
  const { teams } = await both.get("/whoami");
  expect(teams.map(({ uid }: any) => uid).toSorted()).toEqual([await teamOf(owner), await teamOf(person)].toSorted());
  for (const { uid } of teams)
    expect(await both.get("/whoami", { headers: { "x-service-team-uid": uid } })).toMatchObject({
      active_team_uid: uid,
    });
});

test("schedules of a removed member stop with the reason, and run for the member who resumes them", async () => {
  const red = await teamOf(owner);
  const { uid, api_key: key } = await owner.post(`/team/${red}/members`, { email: `${randomUUID()}@example.com` });
  const { id } = await owner
    .as(key)
    .post("/agent/schedules", { name: "theirs", cron_schedule: "0 0 1 1 *", prompt: "Go." });
  await owner.delete(`/team/${red}/members/${uid}`);
  const paused = await eventually(async () => {
    const now = await owner.get(`/agent/schedules/${id}`);
    return !now.enabled && now;
  });
  expect(paused).toMatchObject({
    enabled: false,
    last_spawn_error: expect.stringContaining("removed from the team"),
    history: { next_run: null },
  });
  const { principal } = await owner.get("/whoami");
  expect(await owner.post(`/agent/schedules/${id}/resume`)).toMatchObject({
    enabled: true,
    last_spawn_error: null,
    created_by: { uid: principal.uid },
  });
});

test("automations of a removed member are disabled with the reason until another member enables them", async () => {
  const red = await teamOf(owner);
  const { uid, api_key: key } = await owner.post(`/team/${red}/members`, {
    email: `${randomUUID()}@example.com`,
    role: "admin",
  });
  const settings = {
    name: "theirs",
    prompt: "Go.",
    triggers: [{ provider: "schedule", event: "cron_fired", schedule: { cron: "0 0 1 1 *" } }],
  };
  const made = await owner.as(key).post(`/factory/${factory}/automations`, settings);
  const path = `/factory/${factory}/automations/${made.uid}`;
  await owner.delete(`/team/${red}/members/${uid}`);
  const disabled = await eventually(async () => {
    const now = await owner.get(path);
    return !now.enabled && now;
  });
  expect(disabled).toMatchObject({ enabled: false, disabled_reason: expect.stringContaining("removed from the team") });
  expect(await owner.call("PUT", path, { body: { ...settings, enabled: true } })).toMatchObject({
    status: 200,
    body: { enabled: true, disabled_reason: null },
  });
});

describe("a personal run in a team's conversation", () => {
  test("of a viewer never becomes the task's current run, changes its stage or blocks the team", async () => {
    const run = await startRun(owner, "The team's.");
    const conversation = (await runOf(owner, run)).conversation_id;
    const task = await owner.post(`/factory/${factory}/tasks`, {
      title: "T",
      conversation_id: conversation,
      stage: "IMPLEMENT",
    });
    const both = await keyOf(person, { all_teams: true });
    const mine = await startRun(both, "Mine.", { conversation_id: conversation, team: false });
    await both.post(`/agent/runs/${mine}/cancel`);
    const second = await startRun(both, "Mine.", { conversation_id: conversation, team: false });
    const listed = async () =>
      (await owner.get(`/factory/${factory}/tasks?include_current_run=true`)).tasks.find(
        (one: any) => one.uid === task.uid,
      );
    expect(await listed()).toMatchObject({ stage: "IMPLEMENT", current_run: { run_id: run, state: "QUEUED" } });
    await owner.delete(`/factory/${factory}/tasks/${task.uid}`);
    const again = await owner.post(`/factory/${factory}/tasks`, { title: "Again", conversation_id: conversation });
    expect(await owner.post(`/factory/${factory}/tasks/${again.uid}/cancel`)).toMatchObject({ stage: "CANCELLED" });
    expect([(await runOf(owner, run)).state, (await runOf(both, second)).state]).toEqual(["CANCELLED", "QUEUED"]);
  });
  test("does not change the access of the conversation's link", async () => {
    const stranger = await aTeam(await connect(platform), "green");
    const both = await keyOf(person, { all_teams: true });
    const sharing = { config: { session_sharing: { public_access: "VIEWER" } } };
    for (const [ofTeam, ofPerson, status] of [
      [sharing, {}, 200],
      [{}, sharing, 404],
    ] as const) {
      const conversation = (await runOf(owner, await startRun(owner, "The team's.", ofTeam))).conversation_id;
      await startRun(both, "Mine.", { conversation_id: conversation, team: false, ...ofPerson });
      expect(await statusOf(stranger, "GET", `/agent/conversations/${conversation}`)).toBe(status);
    }
  });
});

describe("the token of a run", () => {
  /** Returns the accepted execution of a run; completes the executions of other runs. */
  async function acceptRun(runId: string): Promise<Assignment> {
    for (;;) {
      const lease = await worker.offer();
      const assignment = (await worker.accept(lease))!;
      if (assignment.runUid === runId) return assignment;
      await worker.complete(lease, "DONE");
    }
  }

  test("reaches nothing personal of its creator", async () => {
    const { api_key: first } = await owner.post(`/team/${await teamOf(owner)}/members`, {
      email: `${randomUUID()}@example.com`,
    });
    const member = await keyOf(owner.as(first), {});
    const mine = await createPersonalResources(member);
    const token = member.as((await acceptRun(await startRun(member, "The team's."))).runToken);
    for (const [, method, path, body] of uses(mine))
      expect([400, 403, 404]).toContain(await statusOf(token, method, path, body));
    expect((await token.get("/agent/runs")).runs.map((one: any) => one.run_id)).not.toContain(mine.run);
    expect(await runOf(member, mine.run)).toMatchObject({ state: "QUEUED" });
  });
  test("reaches its own tree, and no unrelated run of the team", async () => {
    const [run, unrelated] = [await startRun(owner, "First."), await startRun(owner, "Unrelated.")];
    const token = owner.as((await acceptRun(run)).runToken);
    const child = await startRun(token, "Help.");
    expect((await token.get("/agent/runs")).runs.map((one: any) => one.run_id).toSorted()).toEqual(
      [run, child].toSorted(),
    );
    for (const uid of [run, child]) expect(await statusOf(token, "GET", `/agent/runs/${uid}`)).toBe(200);
    for (const [method, path, body] of [
      ["GET", "", undefined],
      ["GET", "/events", undefined],
      ["POST", "/followups", { message: "x" }],
      ["POST", "/cancel", undefined],
    ] as const)
      expect([path, await statusOf(token, method, `/agent/runs/${unrelated}${path}`, body)]).toEqual([path, 404]);
    const { events } = await token.get("/agent/events?since=0");
    expect(events.map((one: any) => one.run_id)).not.toContain(unrelated);
    expect(events.map((one: any) => one.run_id)).toContain(child);
    expect(await statusOf(token, "GET", `/factory/${factory}/tasks`)).toBe(404); // The run belongs to no factory.
  });
  test("of a factory's run reaches the tasks and runs of its factory, and no other factory's", async () => {
    const { run_id: run } = await owner.post(`/factory/${factory}/runs`, { prompt: "Go." });
    const { run_id: sibling } = await owner.post(`/factory/${factory}/runs`, { prompt: "Go too." });
    const other = await aFactory(owner, definitionFiles("No script here."));
    const { run_id: foreign } = await owner.post(`/factory/${other}/runs`, { prompt: "Elsewhere." });
    const token = owner.as((await acceptRun(run)).runToken);
    expect([
      await statusOf(token, "GET", `/factory/${factory}/tasks`),
      await statusOf(token, "GET", `/agent/runs/${sibling}`),
    ]).toEqual([200, 200]);
    expect([
      await statusOf(token, "GET", `/factory/${other}/tasks`),
      await statusOf(token, "GET", `/agent/runs/${foreign}`),
    ]).toEqual([404, 404]);
  });
  test("creates, changes, shares and deletes no environment of its team", async () => {
    const { uid } = await owner.post("/agent/environments", {
      config: { name: "web", allowed_hosts: ["example.com"] },
    });
    const token = owner.as((await acceptRun(await startRun(owner, "Go."))).runToken);
    const path = `/agent/environments/${uid}`;
    for (const [method, asked, body] of [
      ["POST", "/agent/environments", { config: { name: "x" } }],
      ["PUT", path, { config: { name: "web", allowed_hosts: ["attacker.example"] } }],
      ["POST", `${path}/grants`, { team_uid: await teamOf(owner) }],
      ["DELETE", path, undefined],
    ] as const)
      expect([method, asked, await statusOf(token, method, asked, body)]).toEqual([method, asked, 403]);
    expect(await token.get(path)).toMatchObject({ config: { name: "web", allowed_hosts: ["example.com"] } });
  });
  test("changes no artifact of another run, also of its own tree", async () => {
    const run = await startRun(owner, "First.");
    const parent = await acceptRun(run);
    const child = await acceptRun(await startRun(owner.as(parent.runToken), "Help."));
    const artifactOf = async (lease: Assignment): Promise<string> =>
      (
        await worker.call("CreateArtifact", {
          ...{ executionId: lease.executionId, attempt: lease.attempt, clientArtifactId: randomUUID() },
          ...{
            artifactType: "FILE",
            data: { filename: "a.txt", filepath: "a.txt", mime_type: "text/plain" },
            content: Buffer.from("a").toString("base64"),
          },
        })
      ).artifactUid;
    const [own, childs] = [await artifactOf(parent), await artifactOf(child)];
    const publish = (uid: string) =>
      owner.as(parent.runToken).call("PATCH", `/agent/artifacts/${uid}`, { body: { public: true } });
    expect([(await publish(own)).status, (await publish(childs)).status]).toEqual([200, 403]);
  });
});
