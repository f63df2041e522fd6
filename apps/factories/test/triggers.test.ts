import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { JsonObject } from "@bufbuild/protobuf";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError } from "@millwright/testing";
import { aRun, MEMBER, OTHER_TEAM, OWNER, startWorld, OTHER_TEAM_OWNER, TEAM, VIEWER, type World } from "./setup.ts";

let w: World;
let factoryUid: string;
beforeAll(async () => {
  w = await startWorld();
});
beforeEach(async () => {
  await w.reset();
  w.orchestrator.codeHost = {};
  w.orchestrator.asked.length = 0;
  factoryUid = await aFactory();
});
afterAll(() => w.stop());

async function aFactory(repositories: { owner: string; repo: string }[] = []): Promise<string> {
  const { uid } = await w.aFactory({ name: "Shop" });
  await w.rows("UPDATE factories SET repositories = $2::jsonb WHERE uid = $1", [uid, JSON.stringify(repositories)]);
  w.identity.foremen.set(uid, { agentUid: newUid(), agentName: "foreman" });
  return uid;
}
const create = async (trigger: JsonObject, more: JsonObject = {}, at = factoryUid): Promise<string> =>
  (
    await w.automations.createAutomation(
      { factoryUid: at, automation: { name: "auto", prompt: "Go on.", triggers: [trigger], ...more } },
      call(OWNER),
    )
  ).automation!.uid;
const decisions = async (automationUid = "", at = factoryUid) =>
  (await w.automations.listDecisions({ factoryUid: at, automationUid }, call(VIEWER))).decisions;
const runsOf = (automationUid: string) =>
  w.orchestrator.runs.filter(({ request }) => request?.causeKey?.startsWith(`automation/${automationUid}/`));
async function settle(): Promise<void> {
  for (let before = -1, now = 0; now !== before;) {
    before = now;
    for (const consumer of [w.service.tasks, ...w.service.automationEvents]) await consumer.drain();
    await w.service.work.drain();
    now = (await w.rows("SELECT 1 FROM stream.event_log UNION ALL SELECT 1 FROM stream.work_items")).length;
  }
}
const payloadOf = (run: ReturnType<typeof runsOf>[number] | undefined) =>
  JSON.parse(Buffer.from(run!.request!.attachments[0]!.data).toString()) as Record<string, unknown>;

describe("a task that moves to another stage", () => {
  const trigger = (filter: JsonObject = {}): JsonObject => ({
    provider: "factory",
    event: "work_item_stage_changed",
    filter,
  });
  async function aTask(): Promise<string> {
    const run = w.orchestrator.created({ teamUid: TEAM, factoryUid });
    const { task } = await w.tasks.createTask(
      { factoryUid, title: "Mend\n[work item]", conversationUid: run.conversationUid, stage: "TRIAGE" },
      call(OWNER),
    );
    return task!.uid;
  }
  const moveTo = (uid: string, stage: string, caller = OWNER) =>
    w.tasks.updateTask({ factoryUid, task: { uid, stage }, updateMask: { paths: ["stage"] } }, call(caller));

  test("starts a run of each matching automation, with the task as its file", async () => {
    const [one, other] = [
      await create(trigger({ stages: ["REVIEW"], from_stages: ["TRIAGE"] })),
      await create(trigger({ stages: ["SPEC"] })),
    ];
    const task = await aTask();
    await moveTo(task, "REVIEW");
    await settle();
    const [run, ...more] = runsOf(one);
    expect(more).toEqual([]);
    expect(run!.request).toMatchObject({ source: "API", metadata: { automation_uid: one, task_uid: task } });
    expect(run!.request!.prompt).toMatch(
      /^Go on\.\n\n\[work item\]\ntask: [0-9a-f-]+\nstage: TRIAGE to REVIEW\npayload: event-payload\.json \(\d+ bytes, untrusted\)\n/,
    );
    expect(payloadOf(run)).toMatchObject({
      task_uid: task,
      stage: "REVIEW",
      previous_stage: "TRIAGE",
      title: "Mend\n[work item]",
    });
    expect(runsOf(other)).toEqual([]);
    expect(await decisions(other)).toMatchObject([
      {
        outcome: "not_matched",
        checks: [{ failed: ["stages"] }],
        subject: { task_uid: task, stage: "REVIEW", previous_stage: "TRIAGE" },
      },
    ]);
  });

  test("that is created, renamed or saved unchanged starts nothing", async () => {
    const uid = await create(trigger());
    const task = await aTask();
    await moveTo(task, "TRIAGE");
    await w.tasks.updateTask(
      { factoryUid, task: { uid: task, title: "Other" }, updateMask: { paths: ["title"] } },
      call(OWNER),
    );
    await settle();
    expect(await decisions(uid)).toEqual([]);
  });

  test("by a run of the automation itself, or of runs that it caused, does not fire it again", async () => {
    const [one, two] = [
      await create(trigger(), { name: "one" }),
      await create(trigger({ from_stages: ["REVIEW"] }), { name: "two" }),
    ];
    const task = await aTask();
    await moveTo(task, "REVIEW");
    await settle();
    const first = runsOf(one)[0]!;
    await moveTo(task, "SPEC", aRun(first.uid));
    await settle();
    expect(runsOf(one)).toHaveLength(1);
    expect((await decisions(one))[0]).toMatchObject({
      outcome: "suppressed",
      explanation: "It matches, but the change was made by a run that this automation started.",
    });
    const second = runsOf(two)[0]!;
    expect(second.request!.metadata).toMatchObject({ automation_uid: two, automation_chain: `${one},${two}` });
    await moveTo(task, "REVIEW", aRun(second.uid));
    await moveTo(task, "COMPLETE", aRun(second.uid));
    await settle();
    expect([runsOf(one).length, runsOf(two).length]).toEqual([1, 1]);
    await moveTo(task, "REVIEW");
    await settle();
    expect(runsOf(one)).toHaveLength(2);
  });

  test("by the end of an automation's run does not start it again, and a chain continues through dispatches", async () => {
    const uid = await create(trigger());
    const run = w.orchestrator.created({
      teamUid: TEAM,
      factoryUid,
      request: { metadata: { automation_uid: uid } } as never,
    });
    await w.tasks.createTask(
      { factoryUid, title: "T", conversationUid: run.conversationUid, stage: "TRIAGE" },
      call(OWNER),
    );
    w.orchestrator.finished(run, "CANCELLED");
    await settle();
    expect(await decisions(uid)).toMatchObject([
      { outcome: "suppressed", subject: { stage: "CANCELLED", previous_stage: "TRIAGE", by_root_run_uid: run.uid } },
    ]);
    const { runUid } = await w.factories.dispatchRun({ factoryUid, prompt: "Help." }, call(aRun(run.uid)));
    expect(w.orchestrator.runs.find((one) => one.uid === runUid)!.request!.metadata).toMatchObject({
      automation_chain: uid,
    });
    await settle();
    const [task] = (await w.tasks.listTasks({ factoryUid, stages: ["TRIAGE"] }, call(OWNER))).tasks;
    await moveTo(task!.uid, "SPEC", aRun(runUid));
    await settle();
    expect((await decisions(uid)).map(({ outcome }) => outcome)).toEqual(["suppressed", "suppressed"]);
  });
});

describe("a slot of a schedule", () => {
  const trigger: JsonObject = {
    provider: "schedule",
    event: "cron_fired",
    schedule: { cron: "0 6 * * 1", name: "monday" },
  };
  test("starts a run of its automation alone, once", async () => {
    const [uid, other] = [await create(trigger), await create(trigger)];
    const eventUid = w.scheduler.fire(TEAM, {
      factory_uid: factoryUid,
      automation_uid: uid,
      cron: "0 6 * * 1",
      name: "monday",
    });
    await settle();
    await w.rows("UPDATE stream.feed_cursors SET position = 0 WHERE reader = 'automations' AND source = 'scheduler'");
    await w.rows("DELETE FROM stream.work_items");
    await settle();
    expect(runsOf(uid)).toHaveLength(1);
    expect(runsOf(uid)[0]!.request).toMatchObject({
      source: "SCHEDULED_AGENT",
      causeKey: `automation/${uid}/${eventUid}`,
      attachments: [],
      prompt: "Go on.\n\n[schedule]\nschedule: monday (0 6 * * 1)\nslot: 2026-11-20T10:00:00.000Z",
    });
    expect(runsOf(other)).toEqual([]);
    expect(await decisions(uid)).toMatchObject([{ provider: "schedule", event: "cron_fired", outcome: "fired" }]);
    expect(await decisions(other)).toEqual([]);
  });

  test("that the automation does not have any more, or while it is disabled, starts nothing", async () => {
    const [gone, off] = [await create(trigger), await create(trigger, { enabled: false })];
    w.scheduler.fire(TEAM, { factory_uid: factoryUid, automation_uid: gone, cron: "@daily" });
    w.scheduler.fire(TEAM, { factory_uid: factoryUid, automation_uid: off, cron: "0 6 * * 1", name: "monday" });
    await settle();
    expect([runsOf(gone), runsOf(off)]).toEqual([[], []]);
    expect(await decisions()).toMatchObject([{ automationUid: off, outcome: "disabled" }]);
  });

  test("in a batch is decided for its own factory", async () => {
    const uid = await create(trigger);
    const deaf = await aFactory();
    const at = { automation_uid: uid, cron: "0 6 * * 1", name: "monday" };
    const fired = [factoryUid, deaf, factoryUid].map((to) => w.scheduler.fire(TEAM, { factory_uid: to, ...at }));
    await settle();
    expect(new Set((await decisions(uid)).map(({ eventUid }) => eventUid))).toEqual(new Set([fired[0], fired[2]]));
    expect(await w.rows("SELECT 1 FROM trigger_events WHERE factory_uid = $1", [deaf])).toEqual([]);
  });

  test("is synchronised to the scheduler with every change of the automation", async () => {
    const uid = await create(trigger);
    await w.automations.replaceAutomation(
      {
        factoryUid,
        automationUid: uid,
        automation: {
          name: "auto",
          prompt: "x",
          enabled: false,
          triggers: [
            { provider: "schedule", event: "cron_fired", schedule: { cron: "@daily" } },
            { provider: "factory", event: "work_item_stage_changed" },
          ],
        },
      },
      call(OWNER),
    );
    await settle();
    const published = await w.rows<{ payload: JsonObject }>(
      "SELECT payload FROM stream.event_log WHERE entity = 'automation' AND entity_uid = $1 ORDER BY position",
      [uid],
    );
    expect(published.map(({ payload }) => [payload["enabled"], payload["schedules"]])).toEqual([
      [true, [{ cron: "0 6 * * 1", name: "monday" }]],
      [false, [{ cron: "@daily" }]],
    ]);
  });
});

describe("a delivery of a code host", () => {
  const issue = (more: JsonObject = {}) => ({
    action: "labeled",
    label: { name: "agent" },
    issue: {
      number: 7,
      title: "T",
      body: "",
      html_url: "https://h/7",
      user: { login: "ann" },
      labels: [{ name: "agent" }, { name: "bug" }],
    },
    repository: { full_name: "acme/shop" },
    sender: { login: "ann" },
    ...more,
  });
  const labeled = (filter: JsonObject): JsonObject => ({ provider: "github", event: "issue_labeled", filter });
  const deliver = (event: string, body: unknown, teamUid: string = TEAM) =>
    w.webhookIngress.acceptFromCodeHost(
      teamUid,
      "github",
      { "x-github-event": event, "content-type": "application/json" },
      body,
    );

  test("starts one run in every factory of the team whose automation matches, with its payload as the file", async () => {
    const shop = await aFactory([{ owner: "Acme", repo: "Shop" }]);
    const other = await aFactory([{ owner: "acme", repo: "other" }]);
    const [any, own, foreign, not] = [
      await create(labeled({ labels: ["agent"] })),
      await create(labeled({ repos: ["acme/shop"] }), {}, shop),
      await create(labeled({}), {}, other),
      await create(labeled({ labels: ["bug"] })),
    ];
    const uid = deliver("issues", issue());
    await settle();
    expect([any, own, foreign, not].map((one) => runsOf(one).length)).toEqual([1, 1, 0, 0]);
    const { request } = runsOf(own)[0]!;
    expect(request).toMatchObject({
      source: "GITHUB_WEBHOOK",
      metadata: { automation_uid: own, delivery_id: `d-${uid}` },
      attachments: [{ fileName: "event-payload.json" }],
    });
    expect(request!.prompt).toContain("[github event]\nevents: issue_labeled\nrepository: acme/shop\ndelivery: d-");
    expect(payloadOf(runsOf(own)[0])).toEqual(issue());
    expect(await decisions(foreign, other)).toMatchObject([
      { outcome: "not_matched", explanation: "acme/shop is not a repository of the factory." },
    ]);
    expect(await decisions(not)).toMatchObject([{ outcome: "not_matched", checks: [{ failed: ["labels"] }] }]);
  });

  test("of another team, of another event, or caused by the platform itself starts nothing", async () => {
    const uid = await create(labeled({}));
    deliver("issues", issue(), OTHER_TEAM);
    const other = deliver("issues", issue({ action: "unlabeled" }));
    const own = deliver("issues", issue({ sender: { login: "millwright[bot]" } }));
    await settle();
    expect(runsOf(uid)).toEqual([]);
    const about = async (eventUid: string) =>
      (await w.automations.listDecisions({ factoryUid, automationUid: uid, eventUid }, call(VIEWER))).decisions;
    expect(await about(other)).toMatchObject([{ outcome: "not_listening" }]);
    expect(await about(own)).toMatchObject([{ outcome: "not_matched", checks: [{ failed: ["actor"] }] }]);
  });

  describe("is replayed", () => {
    const replay = (
      automationUid: string,
      deliveryUid: string,
      more: { dryRun?: boolean; idempotencyKey?: string; codeHostUid?: string; factoryUid?: string } = {},
      caller = OWNER,
    ) => {
      const { codeHostUid = "" } = w.webhookIngress.codeHostDeliveries.find(({ uid }) => uid === deliveryUid) ?? {};
      return w.automations.replayDelivery(
        { factoryUid, automationUid, codeHostUid: codeHostUid || HOST, deliveryUid, ...more },
        call(caller),
      );
    };
    const HOST = newUid();
    const facts = async () =>
      (
        await w.rows<{ payload: JsonObject }>(
          "SELECT payload FROM stream.event_log WHERE type = 'millwright.automation.run_requested.v1' ORDER BY position",
        )
      ).map(({ payload }) => payload);

    test("against one automation in its current state, as a dry run or not, once per key, each with an event", async () => {
      const [uid, other] = [await create(labeled({ labels: ["bug"] })), await create(labeled({ labels: ["agent"] }))];
      const deaf = await create({ provider: "gitlab", event: "merge_request" });
      const delivered = deliver("issues", issue());
      await settle();
      expect(await replay(uid, delivered, { dryRun: true })).toMatchObject({
        wouldTrigger: false,
        decision: { outcome: "not_matched", checks: [{ failed: ["labels"] }] },
      });
      expect(await replay(other, delivered, { dryRun: true })).toMatchObject({
        wouldTrigger: true,
        decision: { outcome: "pending", provider: "github", event: "replayed" },
      });
      expect(await replay(deaf, delivered, { dryRun: true })).toMatchObject({
        wouldTrigger: false,
        decision: { outcome: "not_listening" },
      });
      await settle();
      expect([runsOf(uid), runsOf(other)].map((all) => all.length)).toEqual([0, 1]);
      await w.automations.replaceAutomation(
        {
          factoryUid,
          automationUid: uid,
          automation: { name: "auto", prompt: "Go on.", enabled: true, triggers: [labeled({ labels: ["agent"] })] },
        },
        call(OWNER),
      );
      const first = await replay(uid, delivered, { idempotencyKey: "k" });
      const again = await replay(uid, delivered, { idempotencyKey: "k" });
      expect(first).toMatchObject({
        wouldTrigger: true,
        decision: {
          outcome: "fired",
          runUid: again.decision!.runUid,
          subject: { delivery_id: `d-${delivered}`, replayed_by: OWNER.principal.uid },
        },
      });
      await settle();
      const [run, ...more] = runsOf(uid);
      expect([more.length, runsOf(other).length]).toEqual([0, 1]);
      expect(run!.request).toMatchObject({ source: "GITHUB_WEBHOOK", metadata: { delivery_id: `d-${delivered}` } });
      expect(run!.request!.prompt).toContain(`delivery: d-${delivered} received 2026-11-20T09:59:00.000Z`);
      expect(payloadOf(run)).toEqual(issue());
      expect(
        (await w.automations.listDecisions({ factoryUid, eventUid: delivered }, call(VIEWER))).decisions
          .map(({ event, outcome }) => `${event} ${outcome}`)
          .toSorted(),
      ).toEqual(["issues fired", "issues not_matched", "replayed fired"]);
      expect(
        (await facts()).map((fact) => [fact["mode"], fact["delivery_uid"], fact["dry_run"], fact["outcome"]]),
      ).toEqual([
        ["replay", delivered, true, "not_matched"],
        ["replay", delivered, true, "pending"],
        ["replay", delivered, true, "not_listening"],
        ["replay", delivered, false, "pending"],
      ]);
    });

    test("not when it was rejected, is another connection's or another team's, and not by those who may not", async () => {
      const uid = await create(labeled({}));
      const delivered = deliver("issues", issue());
      const rejected = { ...w.webhookIngress.codeHostDeliveries.at(-1)!, uid: newUid(), body: undefined };
      w.webhookIngress.codeHostDeliveries.push(rejected);
      const theirs = deliver("issues", issue(), OTHER_TEAM);
      await settle();
      const before = runsOf(uid).length;
      const absent = domainError({ kind: "not_found", reason: "delivery_not_found" });
      await expect(replay(uid, rejected.uid)).rejects.toEqual(
        domainError({ kind: "invalid_argument", reason: "payload_not_stored" }),
      );
      for (const asking of [
        () => replay(uid, theirs),
        () => replay(uid, newUid()),
        () => replay(uid, "nonsense"),
        () => replay(uid, delivered, { codeHostUid: HOST }),
      ])
        await expect(asking()).rejects.toEqual(absent);
      await expect(replay(newUid(), delivered)).rejects.toEqual(domainError({ reason: "automation_not_found" }));
      await expect(replay(uid, delivered, {}, MEMBER)).rejects.toEqual(domainError({ reason: "not_authorized" }));
      await expect(replay(uid, delivered, {}, OTHER_TEAM_OWNER)).rejects.toEqual(
        domainError({ reason: "factory_not_found" }),
      );
      await settle();
      expect([runsOf(uid).length, await facts()]).toEqual([before, []]);
    });
  });

  test("is explained with any texts", async () => {
    const uid = await create(labeled({ labels: ["agent"] }));
    deliver("issues", issue({ label: { name: `a\0\ud800${"x".repeat(5_000)}` }, sender: { login: "an\0n" } }));
    await settle();
    const [decision] = await decisions(uid);
    expect(decision).toMatchObject({ outcome: "not_matched", checks: [{ failed: ["labels"] }] });
    expect(decision!.explanation.length).toBeLessThanOrEqual(2_000);
    expect(decision!.explanation).toContain("a\uFFFD\uFFFDx");
  });

  test.each([
    ["item's URL", { issue: { ...issue().issue, html_url: "https://h/\0" } }],
    ["repository", { repository: { full_name: "acme/sh\0p" } }],
  ])("whose %s contains NUL is decided, without an item", async (_what, more) => {
    const uid = await create(labeled({ labels: ["agent"] }));
    deliver("issues", issue(more));
    await settle();
    expect(await decisions(uid)).toMatchObject([{ outcome: "fired" }]);
    expect(
      runsOf(uid).map(({ request }) => Object.keys(request!.metadata ?? {}).filter((key) => key.startsWith("ticket_"))),
    ).toEqual([[]]);
  });

  describe("whose payload lacks what a filter needs", () => {
    const run = {
      action: "completed",
      workflow_run: {
        name: "ci",
        conclusion: "failure",
        head_branch: "main",
        html_url: "https://h",
        pull_requests: [{ number: 7 }],
      },
      workflow: { name: "ci", path: ".github/workflows/ci.yml" },
      repository: { full_name: "acme/shop" },
      sender: { login: "ann" },
    };
    const failing = (filter: JsonObject): JsonObject => ({
      provider: "github",
      event: "workflow_run_completed",
      filter: { conclusions: ["failure"], ...filter },
    });

    test("asks the code host once for all automations, and only if everything else matches", async () => {
      w.orchestrator.codeHost = { labels: ["agent"], authors: ["ann"] };
      const [yes, no, never] = [
        await create(failing({ labels: ["agent"] })),
        await create(failing({ labels: ["bug"] })),
        await create(failing({ labels: ["agent"], branches: ["release"] })),
      ];
      deliver("workflow_run", run);
      await settle();
      expect([yes, no, never].map((one) => runsOf(one).length)).toEqual([1, 0, 0]);
      expect(w.orchestrator.asked).toEqual(["acme/shop 7"]);
      await create(failing({ branches: ["main"] }));
      for (const uid of [yes, no])
        await w.automations.deleteAutomation({ factoryUid, automationUid: uid }, call(OWNER));
      deliver("workflow_run", run);
      await settle();
      expect(w.orchestrator.asked).toHaveLength(1);
    });

    const AWAY = new DomainError({
      kind: "unavailable",
      reason: "code_host_unavailable",
      message: "The code host is away.",
      retryable: true,
    });
    const about = async (eventUid: string) =>
      (await w.automations.listDecisions({ factoryUid, eventUid }, call(VIEWER))).decisions;
    const makeDue = () =>
      w.rows("UPDATE stream.work_items SET due_at = now() - interval '1 second' WHERE state = 'waiting'");
    const outcomes = async (eventUid: string) =>
      Object.fromEntries((await about(eventUid)).map(({ automationUid, outcome }) => [automationUid, outcome]));

    test("delays only the automation that needs an unreachable code host, and lists it as pending with the reason and the next attempt", async () => {
      const [delayed, sibling, elsewhere] = [
        await create(failing({ authors: ["ann"] })),
        await create(failing({})),
        await create(failing({ branches: ["release"] })),
      ];
      w.orchestrator.codeHost = AWAY;
      const delivery = deliver("workflow_run", run);
      await settle();
      expect(await outcomes(delivery)).toEqual({
        [delayed]: "pending",
        [sibling]: "fired",
        [elsewhere]: "not_matched",
      });
      const [waiting] = (await about(delivery)).filter(({ automationUid }) => automationUid === delayed);
      expect(waiting).toMatchObject({
        explanation: "The code host could not be queried for data that a filter needs: The code host is away.",
        checks: [{ failed: ["authors"] }],
      });
      const [item] = await w.rows<{ due_at: Date }>("SELECT due_at FROM stream.work_items WHERE state = 'waiting'");
      expect(Number(waiting!.nextAttemptAt!.seconds) * 1000 + waiting!.nextAttemptAt!.nanos / 1e6).toBe(
        item!.due_at.getTime(),
      );
      w.orchestrator.codeHost = { authors: ["ann"] };
      await makeDue();
      await settle();
      expect(await outcomes(delivery)).toMatchObject({ [delayed]: "fired" });
      expect((await about(delivery)).map(({ nextAttemptAt }) => nextAttemptAt)).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
      expect([delayed, sibling, elsewhere].map((one) => runsOf(one).length)).toEqual([1, 1, 0]);
    });

    test("matches nothing if the code host rejects the request", async () => {
      const uid = await create(failing({ authors: ["ann"] }));
      w.orchestrator.codeHost = new DomainError({
        kind: "not_found",
        reason: "pull_request_not_found",
        message: "No.",
      });
      deliver("workflow_run", run);
      await settle();
      expect(await decisions(uid)).toMatchObject([{ outcome: "not_matched", checks: [{ failed: ["authors"] }] }]);
    });

    test("decides a delayed automation once, though the process that asked lost its claim and another replica continued", async () => {
      const uid = await create(failing({ authors: ["ann"] }));
      const other = await w.replica();
      w.orchestrator.codeHost = AWAY;
      const delivery = deliver("workflow_run", run);
      await settle();
      w.orchestrator.codeHost = { authors: ["ann"] };
      w.orchestrator.beforeAsked = () =>
        w.rows(
          "UPDATE stream.work_items SET lease = gen_random_uuid() WHERE kind = 'automation.decide-delayed' AND state = 'running'",
        );
      await makeDue();
      await w.service.work.drain();
      expect([await outcomes(delivery), runsOf(uid)]).toEqual([{ [uid]: "pending" }, []]);
      w.orchestrator.beforeAsked = async () => {};
      await w.rows(
        "UPDATE stream.work_items SET state = 'waiting', lease = NULL, due_at = now() - interval '1 second' WHERE kind = 'automation.decide-delayed' AND state = 'running'",
      );
      await other.work.drain();
      expect([await outcomes(delivery), runsOf(uid).length]).toEqual([{ [uid]: "fired" }, 1]);
      await w.rows(
        "UPDATE stream.work_items SET state = 'waiting', due_at = now() - interval '1 second', ended_at = NULL",
      );
      await Promise.all([w.service.work.drain(), other.work.drain()]);
      expect([await outcomes(delivery), runsOf(uid).length]).toEqual([{ [uid]: "fired" }, 1]);
    });

    test("ends the decision of an automation that was deleted while it waited, and one that waited for a day", async () => {
      const [gone, patient] = [
        await create(failing({ authors: ["ann"] })),
        await create(failing({ labels: ["agent"] })),
      ];
      w.orchestrator.codeHost = AWAY;
      const delivery = deliver("workflow_run", run);
      await settle();
      await w.automations.deleteAutomation({ factoryUid, automationUid: gone }, call(OWNER));
      for (let attempt = 2; attempt <= 28; attempt += 1) {
        expect(await outcomes(delivery)).toMatchObject({ [patient]: "pending" });
        await makeDue();
        await w.service.work.drain();
      }
      expect(await outcomes(delivery)).toEqual({ [gone]: "not_matched", [patient]: "failed" });
      expect((await decisions(patient))[0]!.explanation).toMatch(
        /^It was not decided after 28 attempts\. .*The code host is away\. Replay the delivery to try again\.$/,
      );
      expect(await w.rows("SELECT 1 FROM stream.work_items WHERE state <> 'done'")).toEqual([]);
    });

    test("cannot be replayed while the code host is unreachable", async () => {
      const uid = await create(failing({ authors: ["ann"] }));
      w.orchestrator.codeHost = AWAY;
      const delivery = deliver("workflow_run", run);
      const { codeHostUid } = w.webhookIngress.codeHostDeliveries.find((one) => one.uid === delivery)!;
      await expect(
        w.automations.replayDelivery(
          { factoryUid, automationUid: uid, codeHostUid, deliveryUid: delivery },
          call(OWNER),
        ),
      ).rejects.toEqual(domainError({ reason: "code_host_unavailable" }));
      expect(runsOf(uid)).toEqual([]);
    });

    test("a replay that is repeated with its key returns the first decision while the code host is unreachable", async () => {
      const uid = await create(failing({ authors: ["ann"] }));
      w.orchestrator.codeHost = { authors: ["ann"] };
      const delivery = deliver("workflow_run", run);
      const { codeHostUid } = w.webhookIngress.codeHostDeliveries.find((one) => one.uid === delivery)!;
      const replay = () =>
        w.automations.replayDelivery(
          { factoryUid, automationUid: uid, codeHostUid, deliveryUid: delivery, idempotencyKey: "k" },
          call(OWNER),
        );
      const first = await replay();
      expect(first).toMatchObject({ wouldTrigger: true, decision: { outcome: "fired" } });
      w.orchestrator.codeHost = AWAY;
      expect(await replay()).toEqual(first);
    });
  });
});
