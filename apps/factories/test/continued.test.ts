import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { JsonObject } from "@bufbuild/protobuf";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { BUILDS_PER_DAY_MAX } from "../src/domain/bound-task.ts";
import { START } from "../src/domain/decision.ts";
import { OWNER, startWorld, TEAM, VIEWER, type World } from "./setup.ts";

let w: World;
let factoryUid: string;
const FOREMAN = newUid();
beforeAll(async () => {
  w = await startWorld();
});
beforeEach(async () => {
  await w.reset();
  Object.assign(w.orchestrator, { refusal: undefined, beforeAnswer: () => {} });
  for (const list of [w.orchestrator.runs, w.orchestrator.continued]) list.length = 0;
  for (const known of [w.orchestrator.about, w.orchestrator.taken]) known.clear();
  factoryUid = await aFactory();
});
afterAll(() => w.stop());

async function aFactory(): Promise<string> {
  const { uid } = await w.aFactory({ name: "Shop" });
  w.identity.foremen.set(uid, { agentUid: FOREMAN, agentName: "foreman" });
  return uid;
}

const ISSUE = "https://github.test/acme/shop/issues/7";
const PULL = "https://github.test/acme/shop/pull/9";
const repository = { full_name: "acme/shop" };
const sender = { login: "ada" };
const issue = (more: object = {}) => ({
  action: "opened",
  repository,
  sender,
  issue: { number: 7, title: "Broken", body: "x", html_url: ISSUE, labels: [], user: sender },
  ...more,
});
const review = (more: object = {}) => ({
  action: "submitted",
  repository,
  sender,
  review: { state: "changes_requested", body: "no" },
  pull_request: { number: 9, title: "Mend", html_url: PULL, labels: [], user: sender, base: { ref: "main" } },
  ...more,
});
const build = (more: object = {}) => ({
  action: "completed",
  repository: { id: 1, full_name: "acme/shop", html_url: "https://github.test/acme/shop" },
  sender: { login: "millwright[bot]" },
  check_suite: {
    conclusion: "failure",
    head_branch: "agent/x",
    pull_requests: [{ number: 9, base: { repo: { id: 1 } } }],
    ...more,
  },
});
const fromGithub = (name: string, payload: unknown) =>
  w.webhookIngress.acceptFromCodeHost(
    TEAM,
    "github",
    { "x-github-event": name, "content-type": "application/json" },
    payload,
  );
const fromGitlab = (payload: unknown) =>
  w.webhookIngress.acceptFromCodeHost(
    TEAM,
    "gitlab",
    { "x-gitlab-event": "Note Hook", "content-type": "application/json" },
    payload,
  );

const automation = async (event: string, more: JsonObject = {}, at = factoryUid): Promise<string> =>
  (
    await w.automations.createAutomation(
      {
        factoryUid: at,
        automation: { name: event, prompt: "Go on.", triggers: [{ provider: "github", event }], ...more },
      },
      call(OWNER),
    )
  ).automation!.uid;
const decisions = async (at = factoryUid) =>
  (await w.automations.listDecisions({ factoryUid: at }, call(VIEWER))).decisions;
const fresh = () =>
  w.orchestrator.runs.filter(({ request }) => request?.origin === "automation" && !request.conversationUid);
async function settle(): Promise<void> {
  for (const consumer of w.service.automationEvents) await consumer.drain();
  await w.service.work.drain();
}

/** Creates a task with its own run. */
async function aTask({
  ticket,
  stage = "TRIAGE",
  at = factoryUid,
  agent = { agentUid: FOREMAN, agentName: "foreman" },
}: { ticket?: [string, string]; stage?: string; at?: string; agent?: { agentUid?: string; agentName?: string } } = {}) {
  const request = { metadata: ticket ? { ticket_source: ticket[0], ticket_id: ticket[1] } : {} } as never;
  const run = w.orchestrator.created({ teamUid: TEAM, factoryUid: at, request, ...agent });
  const { task } = await w.tasks.createTask(
    { factoryUid: at, title: "Mend", conversationUid: run.conversationUid, stage },
    call(OWNER),
  );
  return { uid: task!.uid, run };
}

describe("an event on an item to which a task is bound", () => {
  test.each<[string, (conversationUid: string) => void, [string, string] | undefined]>([
    ["by its ticket", () => {}, ["github", "acme/shop#7"]],
    ["by its ticket in other letters", () => {}, ["GitHub", "Acme/Shop#7"]],
    ["by the URL as its ticket", () => {}, ["github", ISSUE]],
    [
      "by what its runs reported",
      (conversationUid) => w.orchestrator.about.set(ISSUE, [newUid(), conversationUid]),
      undefined,
    ],
  ])("%s continues that task", async (_how, bind, ticket) => {
    const [uid, task] = [await automation("issue_created"), await aTask({ ticket })];
    bind(task.run.conversationUid);
    const eventUid = fromGithub("issues", issue());
    await settle();
    expect(await decisions()).toMatchObject([
      {
        automationUid: uid,
        eventUid,
        outcome: "continued",
        runUid: task.run.uid,
        explanation: `It matches; task ${task.uid}, which is bound to the same item, continues in run ${task.run.uid}.`,
      },
    ]);
    expect(fresh()).toEqual([]);
    const [continued, ...more] = w.orchestrator.continued;
    expect(more).toEqual([]);
    expect(continued!.request).toMatchObject({
      conversationUid: task.run.conversationUid,
      causeKey: `automation/${uid}/${eventUid}`,
      agentUid: FOREMAN,
      source: "GITHUB_WEBHOOK",
      factoryUid,
      ownerUid: TEAM,
    });
    expect(continued!.request.prompt).toMatch(
      new RegExp(
        `^Go on\\.\n\n\\[github event\\]\nevents: issue_created\n.*\n.*\ntask: ${task.uid}\npayload: event-payload\\.json `,
      ),
    );
    expect(Buffer.from(continued!.request.attachments[0]!.data).toString()).toBe(JSON.stringify(issue()));
  });

  test("on its pull request continues it, in a new run when the last one has ended", async () => {
    await automation("pull_request_review_submitted");
    const task = await aTask();
    w.orchestrator.about.set(PULL, [task.run.conversationUid]);
    Object.assign(task.run, { state: "SUCCEEDED" });
    fromGithub("pull_request_review", review());
    await settle();
    const [decision] = await decisions();
    expect(decision).toMatchObject({ outcome: "continued" });
    expect(decision!.runUid).not.toBe(task.run.uid);
    expect(w.orchestrator.runs.find(({ uid }) => uid === decision!.runUid)).toMatchObject({
      conversationUid: task.run.conversationUid,
    });
  });

  test("continues it when it is replayed, too", async () => {
    const uid = await automation("issue_created");
    const delivered = fromGithub("issues", issue());
    await settle();
    const task = await aTask({ ticket: ["github", "acme/shop#7"] });
    const { codeHostUid } = w.webhookIngress.codeHostDeliveries.find((one) => one.uid === delivered)!;
    const { decision } = await w.automations.replayDelivery(
      { factoryUid, automationUid: uid, codeHostUid, deliveryUid: delivered },
      call(OWNER),
    );
    expect(decision).toMatchObject({ outcome: "continued", runUid: task.run.uid });
    expect([fresh().length, w.orchestrator.continued.length]).toEqual([1, 1]);
  });

  test("of GitLab continues it too", async () => {
    const url = "https://gitlab.test/acme/shop/-/merge_requests/12";
    await automation("bot_mentioned", { triggers: [{ provider: "gitlab", event: "bot_mentioned" }] });
    const task = await aTask({ ticket: ["gitlab", "acme/shop!12"] });
    fromGitlab({
      object_kind: "note",
      user: { username: "ada" },
      project: { path_with_namespace: "acme/shop" },
      merge_request: { iid: 12, title: "Faster" },
      object_attributes: { note: "@millwright look", action: "create", url: `${url}#note_1` },
    });
    await settle();
    expect(await decisions()).toMatchObject([{ outcome: "continued", runUid: task.run.uid }]);
  });

  test("continues the newest of several tasks, for each automation by itself", async () => {
    const [one, other] = [await automation("issue_created"), await automation("issue_created")];
    const tasks = [
      await aTask({ ticket: ["github", "acme/shop#7"] }),
      await aTask({ ticket: ["github", "acme/shop#7"] }),
    ];
    await w.rows("UPDATE tasks SET created_at = created_at - interval '1 h' WHERE uid = $1", [tasks[0]!.uid]);
    fromGithub("issues", issue());
    await settle();
    expect(
      new Map((await decisions()).map(({ automationUid, outcome, runUid }) => [automationUid, [outcome, runUid]])),
    ).toEqual(new Map([one, other].map((uid) => [uid, ["continued", tasks[1]!.run.uid]])));
    expect(w.orchestrator.continued).toHaveLength(2);
  });
});

describe("an event starts a run of its own", () => {
  const bound = { ticket: ["github", "acme/shop#7"] as [string, string] };
  test.each<[string, () => Promise<unknown>]>([
    ["nothing is bound to its item", async () => {}],
    ["the task is another issue's", () => aTask({ ticket: ["github", "acme/shop#71"] })],
    ["the task is another tracker's", () => aTask({ ticket: ["linear", "acme/shop#7"] })],
    [
      "the task was deleted",
      async () => w.tasks.deleteTask({ factoryUid, taskUid: (await aTask(bound)).uid }, call(OWNER)),
    ],
    ["the task was cancelled", () => aTask({ ...bound, stage: "CANCELLED" })],
    ["the task belongs to another factory", async () => aTask({ ...bound, at: await aFactory() })],
    [
      "another agent has the task's conversation",
      () => aTask({ ...bound, agent: { agentUid: newUid(), agentName: "reviewer" } }),
    ],
    [
      "no member of the team may see the conversation's newest run",
      async () =>
        w.orchestrator.created({ teamUid: newUid(), conversationUid: (await aTask(bound)).run.conversationUid }),
    ],
    [
      "the conversation can no longer be continued",
      async () => w.orchestrator.taken.add((await aTask(bound)).run.conversationUid),
    ],
  ])("when %s", async (_why, prepare) => {
    await automation("issue_created");
    await prepare();
    fromGithub("issues", issue());
    await settle();
    expect((await decisions()).map(({ outcome }) => outcome)).toEqual(["fired"]);
    expect(w.orchestrator.continued).toEqual([]);
    expect(fresh().map(({ request }) => request!.metadata)).toMatchObject([
      { ticket_source: "github", ticket_id: "acme/shop#7", ticket_url: ISSUE },
    ]);
  });
});

test("an agent that the automation names continues its own task, and no other's", async () => {
  const [named, foremans] = [
    await automation("issue_created", { agent: "reviewer" }),
    await automation("issue_created"),
  ];
  const task = await aTask({ ticket: ["github", "acme/shop#7"], agent: { agentUid: newUid(), agentName: "reviewer" } });
  fromGithub("issues", issue());
  await settle();
  expect(Object.fromEntries((await decisions()).map(({ automationUid, outcome }) => [automationUid, outcome]))).toEqual(
    { [named]: "continued", [foremans]: "fired" },
  );
  expect(w.orchestrator.continued).toMatchObject([{ runUid: task.run.uid, request: { agentName: "reviewer" } }]);
});

test("a task that is made of an automation's run is bound to the item of its event", async () => {
  await automation("issue_created");
  await automation("issue_mentioned");
  fromGithub("issues", issue());
  await settle();
  const [run] = fresh();
  Object.assign(run!, { agentUid: FOREMAN });
  const { task } = await w.tasks.createTask(
    { factoryUid, title: "Mend", conversationUid: run!.conversationUid, stage: "TRIAGE" },
    call(OWNER),
  );
  expect(task).toMatchObject({ ticketSource: "github", ticketId: "acme/shop#7" });
  fromGithub("issue_comment", {
    action: "created",
    repository,
    sender,
    comment: { body: "@millwright go" },
    issue: issue().issue,
  });
  await settle();
  expect((await decisions())[0]).toMatchObject({ outcome: "continued", runUid: run!.uid });
});

describe("a build of a pull request to which a task is bound", () => {
  const aBoundTask = async () => {
    const task = await aTask();
    w.orchestrator.about.set(PULL, [task.run.conversationUid]);
    return task;
  };
  const outcomes = async () => (await decisions()).map(({ outcome }) => outcome);

  test("continues that task, independent of who caused the event", async () => {
    await automation("check_suite_completed", {
      triggers: [{ provider: "github", event: "check_suite_completed", filter: { conclusions: ["failure"] } }],
    });
    const task = await aBoundTask();
    fromGithub("check_suite", build());
    await settle();
    expect(await decisions()).toMatchObject([
      { outcome: "continued", runUid: task.run.uid, explanation: expect.stringContaining(task.uid) },
    ]);
    expect(w.orchestrator.continued[0]!.request.prompt).toContain(`\ntask: ${task.uid}\n`);
    fromGithub("check_suite", build({ conclusion: "success" }));
    await settle();
    expect(await outcomes()).toEqual(["not_matched", "continued"]);
  });

  test.each<[string, object]>([
    ["no pull request", { pull_requests: [] }],
    ["another pull request", { pull_requests: [{ number: 90 }] }],
    [
      "a pull request of this number in another repository",
      { pull_requests: [{ number: 9, base: { repo: { id: 2 } } }] },
    ],
  ])("starts a run of its own when it names %s", async (_what, more) => {
    await automation("check_suite_completed");
    await aBoundTask();
    fromGithub("check_suite", build(more));
    await settle();
    expect([await outcomes(), w.orchestrator.continued]).toEqual([["fired"], []]);
  });

  test("continues it up to a daily limit, which does not apply to people and reviews", async () => {
    const uid = await automation("any", {
      triggers: [
        { provider: "github", event: "check_suite_completed" },
        { provider: "github", event: "pull_request_review_submitted" },
      ],
    });
    const task = await aBoundTask();
    const delivered: string[] = [];
    for (let n = 0; n <= BUILDS_PER_DAY_MAX; n += 1) {
      delivered.push(fromGithub("check_suite", build()));
      await settle();
    }
    const [last, ...others] = await decisions();
    expect(others.map(({ outcome }) => outcome)).toEqual(Array(BUILDS_PER_DAY_MAX).fill("continued"));
    expect(last).toMatchObject({
      outcome: "suppressed",
      explanation: `It matches, but it has continued task ${task.uid} for ${BUILDS_PER_DAY_MAX} builds within a day (limit 10). Replay the delivery to continue it once more.`,
    });
    fromGithub("pull_request_review", review());
    await settle();
    expect((await outcomes())[0]).toBe("continued");
    const { codeHostUid } = w.webhookIngress.codeHostDeliveries.find((one) => one.uid === delivered[0])!;
    expect(
      (
        await w.automations.replayDelivery(
          { factoryUid, automationUid: uid, codeHostUid, deliveryUid: delivered[0]! },
          call(OWNER),
        )
      ).decision,
    ).toMatchObject({ outcome: "continued" });
    await w.rows("UPDATE decisions SET decided_at = decided_at - interval '48 h'");
    fromGithub("check_suite", build());
    await settle();
    expect((await outcomes())[0]).toBe("continued");
    expect(fresh()).toEqual([]);
  });
});

test("pushes and deliveries to webhooks never continue", async () => {
  const hook = newUid();
  await automation("any", {
    triggers: [
      { provider: "github", event: "push" },
      { provider: "webhook", event: "received", filter: { webhook_ids: [hook] } },
    ],
  });
  const task = await aTask({ ticket: ["github", "acme/shop#9"] });
  w.orchestrator.about.set(PULL, [task.run.conversationUid]);
  fromGithub("push", { ref: "refs/heads/main", repository, sender, compare: PULL, commits: [] });
  w.webhookIngress.accept({ factoryUid, teamUid: TEAM, webhookUid: hook }, review());
  await settle();
  expect((await decisions()).map(({ outcome }) => outcome)).toEqual(["fired", "fired"]);
});

test("what the platform's own account does continues nothing, and a disabled automation neither", async () => {
  await automation("issue_created");
  await automation("issue_mentioned", { enabled: false });
  await aTask({ ticket: ["github", "acme/shop#7"] });
  fromGithub("issues", issue({ sender: { login: "millwright[bot]" } }));
  fromGithub("issue_comment", {
    action: "created",
    repository,
    sender,
    comment: { body: "@millwright go" },
    issue: issue().issue,
  });
  await settle();
  expect((await decisions()).map(({ outcome }) => outcome)).toEqual(["disabled", "not_matched"]);
  expect(w.orchestrator.continued).toEqual([]);
});

describe("is applied once after crashes and repeated events", () => {
  test("an event is delivered once when the response is lost, and its decision does not change", async () => {
    await automation("issue_created");
    const task = await aTask({ ticket: ["github", "acme/shop#7"] });
    fromGithub("issues", issue());
    for (const consumer of w.service.automationEvents) await consumer.drain();
    let left = 1;
    w.orchestrator.beforeAnswer = () => {
      if (left-- > 0) throw new DomainError({ kind: "unavailable", reason: "gone", message: "The process died." });
    };
    await w.service.work.drain();
    expect(w.orchestrator.continued).toHaveLength(1);
    // too late, because the event has already been decided
    await w.tasks.deleteTask({ factoryUid, taskUid: task.uid }, call(OWNER));
    await w.rows("UPDATE stream.work_items SET due_at = '2026-01-01' WHERE state <> 'done'");
    await settle();
    expect(await decisions()).toMatchObject([{ outcome: "continued", runUid: task.run.uid }]);
    expect([w.orchestrator.continued.length, fresh().length]).toEqual([1, 0]);
  });

  test("a feed that is read again, and work that is repeated, have no further effect", async () => {
    await automation("issue_created");
    const task = await aTask({ ticket: ["github", "acme/shop#7"] });
    fromGithub("issues", issue());
    await settle();
    await w.rows(
      "UPDATE stream.feed_cursors SET position = position - 1 WHERE reader = 'automations' AND source = 'webhook-ingress'",
    );
    await w.rows("DELETE FROM stream.work_items");
    await settle();
    await w.rows(
      "UPDATE stream.work_items SET state = 'waiting', due_at = '2026-01-01', ended_at = NULL WHERE kind = $1",
      [START],
    );
    await settle();
    expect(w.orchestrator.continued).toHaveLength(1);
    expect(await decisions()).toMatchObject([{ outcome: "continued", runUid: task.run.uid }]);
  });
});
