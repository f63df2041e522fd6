import { randomUUID } from "node:crypto";
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { RUN_TIMEOUT_MS, runOf, script, shellOutputs, succeeded } from "./support/runs.ts";
import { aCodeHost, aFactory, aTeam, definitionFiles, type CodeHost } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let factory: string;
let hub: CodeHost;
let lab: CodeHost;

const BOT = { webhook: { bot_login: "mill" } };
const LOOK = script("shell: cat .attachments/*/event-payload.json | tail -c 8");

beforeAll(async () => {
  platform = await startPlatform();
  api = await connect(platform);
  [hub, lab] = [await aCodeHost(api, "github", BOT), await aCodeHost(api, "gitlab", BOT)];
  factory = await aFactory(api, definitionFiles(script("say: Begun.")));
  await api.post(`/factory/${factory}/automations`, {
    name: "on issues",
    prompt: `Go on.\n\n${LOOK}`,
    triggers: [{ provider: "github", event: "issue_mentioned" }],
  });
  await api.post(`/factory/${factory}/automations`, {
    name: "on builds",
    prompt: `Go on.\n\n${LOOK}`,
    triggers: [{ provider: "github", event: "workflow_run_completed", filter: { conclusions: ["failure"] } }],
  });
  await api.post(`/factory/${factory}/automations`, {
    name: "on requests",
    prompt: `Go on.\n\n${LOOK}`,
    triggers: [{ provider: "gitlab", event: "bot_mentioned" }],
  });
});
afterAll(() => platform?.remove());

/** Returns the event id of an accepted delivery. */
const acceptedOf = async ({ path }: CodeHost, id: string): Promise<string> =>
  (await api.get(`${path}/webhook/deliveries?limit=100`)).deliveries.find(
    (one: any) => one.delivery_id === id && one.outcome === "accepted",
  ).uid;

/** Sends the event of a comment on an issue. Returns the id of the delivery, which may be retried. */
const comment = (number: number, id: string = randomUUID(), login = "ada"): Promise<string> =>
  fromGithub("issue_comment", id, {
    action: "created",
    comment: { body: "@mill go on" },
    sender: { login },
    repository: { full_name: "acme/shop" },
    issue: { number, title: "Broken", html_url: issueUrl(number) },
    end: "of it",
  });

/** Sends the event of a completed build of a pull request, caused by the platform's own push. */
const built = (number: number, conclusion: string): Promise<string> =>
  fromGithub("workflow_run", randomUUID(), {
    action: "completed",
    sender: { login: "mill" },
    repository: { id: 1, full_name: "acme/shop", html_url: "https://github.com/acme/shop" },
    workflow_run: {
      name: "CI",
      conclusion,
      head_branch: "agent/x",
      html_url: "https://github.com/acme/shop/actions/runs/1",
      pull_requests: [{ number, base: { repo: { id: 1 } } }],
    },
    end: "of it",
  });

async function fromGithub(event: string, id: string, payload: object): Promise<string> {
  const body = JSON.stringify(payload);
  const headers = {
    "content-type": "application/json",
    "x-github-event": event,
    "x-github-delivery": id,
    "x-hub-signature-256": await sign(hub.secret, body),
  };
  expect((await api.fetch(hub.url, { method: "POST", headers, body })).status).toBe(202);
  return acceptedOf(hub, id);
}
const issueUrl = (number: number): string => `https://github.com/acme/shop/issues/${number}`;

/** Sends the event of a comment on a merge request of GitLab. */
async function note(number: number): Promise<string> {
  const [id, url] = [randomUUID(), requestUrl(number)];
  const body = JSON.stringify({
    object_kind: "note",
    user: { username: "ada" },
    project: { path_with_namespace: "acme/tools/shop" },
    merge_request: { iid: number, title: "Faster" },
    object_attributes: { note: "@mill go on", action: "create", url: `${url}#note_1` },
    end: "of it",
  });
  const headers = {
    "content-type": "application/json",
    "x-gitlab-event": "Note Hook",
    "x-gitlab-token": lab.secret,
    "idempotency-key": id,
  };
  expect((await api.fetch(lab.url, { method: "POST", headers, body })).status).toBe(202);
  return acceptedOf(lab, id);
}
const requestUrl = (number: number): string => `https://gitlab.com/acme/tools/shop/-/merge_requests/${number}`;

/** Returns the decision about an event once it is not pending. */
const decided = (eventUid: string, at = factory): Promise<any> =>
  eventually(
    async () => {
      const { status, body } = await api.call("GET", `/factory/${at}/decisions?event_uid=${eventUid}`);
      const [decision] = status === 200 ? body.decisions : [];
      return decision !== undefined && decision.outcome !== "pending" && decision;
    },
    { timeoutMs: RUN_TIMEOUT_MS, everyMs: 100 },
  );

/** Creates a task whose first run has ended. */
async function aTask(
  ticketRef?: string,
  { prompt = "Go.", ...more }: { prompt?: string; ticket_url?: string } = {},
): Promise<any> {
  const { run_id: runId } = await api.post(`/factory/${factory}/runs`, {
    prompt,
    ...more,
    ...(ticketRef !== undefined && { ticket_ref: ticketRef }),
  });
  await succeeded(api, runId);
  return eventually(
    async () => {
      const { status, body } = await api.call("GET", `/factory/${factory}/task-by-run?run_id=${runId}`);
      return status === 200 && body;
    },
    { timeoutMs: RUN_TIMEOUT_MS },
  );
}
const runsOf = async (task: any): Promise<Set<string>> =>
  new Set(
    (await api.get(`/agent/runs?factory_uid=${factory}&limit=100`)).runs
      .filter((run: any) => run.conversation_id === task.conversation_id)
      .map((run: any) => run.run_id),
  );

test("an event on the issue of a task continues its conversation once, with the payload, also if it is delivered twice", async () => {
  const task = await aTask("github:Acme/shop#1");
  const id = randomUUID();
  const event = await comment(1, id);
  await comment(1, id);
  const decision = await decided(event);
  expect(decision).toMatchObject({
    outcome: "continued",
    automation: "on issues",
    explanation: `It matches; task ${task.uid}, which is bound to the same item, continues in run ${decision.run_id}.`,
  });
  const run = await succeeded(api, decision.run_id);
  expect(run).toMatchObject({
    conversation_id: task.conversation_id,
    source: "GITHUB_WEBHOOK",
    trigger_url: `${platform.url}/factories/${factory}/events/${event}`,
    metadata: { ticket_source: "github", ticket_id: "acme/shop#1" },
  });
  expect(run.prompt).toContain(`\ntask: ${task.uid}\npayload: event-payload.json (`);
  expect(await shellOutputs(api, run.run_id)).toEqual([expect.stringContaining('"of it"}')]);
  expect(await runsOf(task)).toEqual(new Set([task.run_id, run.run_id]));
  expect(await api.get(`/factory/${factory}/task-by-run?run_id=${run.run_id}`)).toMatchObject({
    uid: task.uid,
    run_id: task.run_id,
    stage: "TRIAGE",
  });
  const { tasks } = await api.get(`/factory/${factory}/tasks?include_current_run=true&limit=100`);
  expect(tasks.find(({ uid }: any) => uid === task.uid).current_run.run_id).toBe(run.run_id);
});

test("an event on the issue at a ticket's URL continues its task, however the URL was written", async () => {
  const ticketUrl = "https://GitHub.com/acme/shop/issues/20/?tab=all#issuecomment-1";
  const task = await aTask(undefined, { ticket_url: ticketUrl });
  const decision = await decided(await comment(20));
  expect(decision).toMatchObject({ outcome: "continued", explanation: expect.stringContaining(task.uid) });
  expect((await succeeded(api, decision.run_id)).conversation_id).toBe(task.conversation_id);
  expect((await runOf(api, task.run_id)).metadata.ticket_url).toBe(ticketUrl);
});

test("the first of two concurrent events creates the run, and the second is sent to it as a follow-up", async () => {
  const task = await aTask("github:acme/shop#2");
  await api.patch(`/factory/${factory}`, { queue_paused: true });
  const decisions = await Promise.all((await Promise.all([comment(2), comment(2)])).map((event) => decided(event)));
  expect(decisions.map(({ outcome }) => outcome)).toEqual(["continued", "continued"]);
  const [runId, ...others] = [...new Set(decisions.map(({ run_id: uid }) => uid))];
  expect([others, await runsOf(task)]).toEqual([[], new Set([task.run_id, runId])]);
  // The third event adds a follow-up to the queued run.
  expect((await decided(await comment(2))).run_id).toBe(runId);
  await api.patch(`/factory/${factory}`, { queue_paused: false });
  await succeeded(api, runId);
  expect((await api.get(`/agent/runs/${runId}/followups?limit=100`)).followups.map(({ state }: any) => state)).toEqual([
    "delivered",
    "delivered",
  ]);
});

test("a merge request that a run of the task has reported belongs to the task", async () => {
  const task = await aTask(undefined, { prompt: script(`external_reference: ${requestUrl(3)}`) });
  const decision = await decided(await note(3));
  expect(decision).toMatchObject({ outcome: "continued", automation: "on requests" });
  expect(await succeeded(api, decision.run_id)).toMatchObject({
    conversation_id: task.conversation_id,
    source: "GITLAB_WEBHOOK",
  });
});

test("a failed build of a pull request continues its task, and a successful one starts nothing", async () => {
  const task = await aTask(undefined, { prompt: script("external_reference: https://github.com/acme/shop/pull/30") });
  const decision = await decided(await built(30, "failure"));
  expect(decision).toMatchObject({ outcome: "continued", automation: "on builds" });
  const run = await succeeded(api, decision.run_id);
  expect(run).toMatchObject({ conversation_id: task.conversation_id, source: "GITHUB_WEBHOOK" });
  expect(run.prompt).toContain(`\ntask: ${task.uid}\n`);
  expect(await shellOutputs(api, run.run_id)).toEqual([expect.stringContaining('"of it"}')]);
  expect((await decided(await built(30, "success"))).outcome).toBe("not_matched");
  expect((await decided(await built(31, "failure"))).outcome).toBe("fired");
});

test("a task created from the run of an event is continued by the next event", async () => {
  const first = await decided(await comment(4));
  expect(first).toMatchObject({ outcome: "fired" });
  const { conversation_id: conversation } = await succeeded(api, first.run_id);
  const task = await api.post(`/factory/${factory}/tasks`, { title: "Fix", conversation_id: conversation });
  const next = await decided(await comment(4));
  expect(next).toMatchObject({ outcome: "continued", explanation: expect.stringContaining(task.uid) });
  expect((await runOf(api, next.run_id)).conversation_id).toBe(conversation);
});

test("cancelled and deleted tasks, and tasks of other items, factories and teams, are not continued, and the platform's own actions continue nothing", async () => {
  const [cancelled, deleted] = [await aTask("github:acme/shop#5"), await aTask("github:acme/shop#6")];
  await api.patch(`/factory/${factory}/tasks/${cancelled.uid}`, { stage: "CANCELLED" });
  await api.delete(`/factory/${factory}/tasks/${deleted.uid}`);
  const stranger = await aTeam(api, `strangers-${randomUUID().slice(0, 8)}`);
  const theirs = await aFactory(stranger, definitionFiles(script("say: Begun.")));
  const { run_id: foreign } = await stranger.post(`/factory/${theirs}/runs`, {
    prompt: "Go.",
    ticket_ref: "github:acme/shop#7",
    ticket_url: issueUrl(7),
  });
  const other = await aFactory(api, definitionFiles(script("say: Begun.")));
  await api.post(`/factory/${other}/runs`, { prompt: "Go.", ticket_ref: "github:acme/shop#8" });
  for (const number of [5, 6, 7, 8, 50]) {
    const decision = await decided(await comment(number));
    expect([number, decision.outcome]).toEqual([number, "fired"]);
    expect([cancelled.conversation_id, deleted.conversation_id]).not.toContain(
      (await runOf(api, decision.run_id)).conversation_id,
    );
  }
  expect((await stranger.get(`/agent/runs?factory_uid=${theirs}`)).runs.map((run: any) => run.run_id)).toEqual([
    foreign,
  ]);
  expect((await decided(await comment(5, randomUUID(), "mill"))).outcome).toBe("not_matched");
});
