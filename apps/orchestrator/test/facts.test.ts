import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import { serviceCaller, type Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { aCaller, domainError } from "@millwright/testing";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { aRun, teamOf } from "./support/platform.ts";

let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
beforeAll(async () => {
  p = await catalogPlatform();
  worker = await p.worker({ slots: 100 });
  await p.database.sql.query(
    "INSERT INTO model_prices (model_id, version, input_per_million_micros, output_per_million_micros) VALUES ('priced', 3, 1000000, 2000000)",
  );
});
beforeEach(() => void (caller = aCaller()));
afterAll(() => p.close());

const asMetrics = () => p.as(serviceCaller("metrics", newUid()));
const listFacts = async (...runUids: string[]) => (await p.runFacts.listRunFacts({ runUids }, asMetrics())).runs;
const factsOf = async (uid: string) => (await listFacts(uid))[0]!;
const walk = (pageSize = 0, pageToken = "") => p.runFacts.walkRuns({ pageSize, pageToken }, asMetrics());
const timeOf = (at: Timestamp | undefined) => at && timestampDate(at);
const rowsOf = async (text: string, ...params: unknown[]) => (await p.database.sql.query<any>(text, params)).rows;
const useModel = (
  execution: ActiveExecution,
  callId: string,
  modelId = "priced",
  usage: object = { inputTokens: 30n, outputTokens: 12n },
) => p.workers.reportUsage({ ...execution.lease, callId, modelId, usage }, bearer(worker));

function anAgent(agentType: string, factoryUid: string = newUid()) {
  const uid = newUid();
  p.known.agents.set(uid, { agentUid: uid, agentName: agentType.toLowerCase(), agentType, factoryUid });
  return { uid, factoryUid };
}

/**
 * Creates two trees of one factory and one tree of another, all in one conversation, and a child in the first tree.
 * Each run has metered calls.
 */
async function sharedConversation() {
  const lead = anAgent("FOREMAN");
  const coder = anAgent("IMPLEMENT", lead.factoryUid);
  const reviewer = anAgent("REVIEW");
  const root = await p.run(caller, { agentUid: lead.uid, source: "WEB_APP" });
  const first = await startExecution(p, worker);
  const child = await p.run(caller, { agentUid: coder.uid, parentRunUid: root.uid });
  const second = await startExecution(p, worker);
  await useModel(first, "a");
  await useModel(first, "b", "unknown-model");
  await useModel(second, "a", "priced", { inputTokens: 7n, outputTokens: 0n, inputCacheReadTokens: 5n });
  await second.complete("DONE");
  await first.complete("DONE");
  const again = await p.run(caller, { agentUid: coder.uid, conversationUid: root.conversationUid, source: "CLI" });
  const third = await startExecution(p, worker);
  await useModel(third, "a", "unknown-model", {});
  await third.complete("FAILED", {
    error: { code: "internal_error", message: "No.", retryable: false, reason: "failed" },
  });
  const elsewhere = await p.run(caller, { agentUid: reviewer.uid, conversationUid: root.conversationUid });
  await p.life.cancelRun(caller, { runUid: elsewhere.uid, tree: false });
  return { root, child, again, elsewhere };
}

/** Computes the expected facts of a run from the tables, read one by one, as the contract defines them. */
async function expectedFacts(uid: string) {
  const [run] = await rowsOf("SELECT * FROM runs WHERE uid = $1", uid);
  const rootOf = async (of: any) => (await rowsOf("SELECT * FROM runs WHERE uid = $1", of.root_run_uid))[0];
  const ownerOf = async (of: any) => {
    const root = await rootOf(of);
    return {
      ...{ runUid: of.uid, rootRunUid: of.root_run_uid, factoryUid: root.factory_uid ?? "", source: root.source },
      ...{
        creatorType: root.creator_type,
        creatorUid: root.creator_uid,
        agentUid: of.agent_uid ?? "",
        modelId: of.model_id,
      },
    };
  };
  const conversation = await rowsOf("SELECT * FROM runs WHERE conversation_uid = $1", run.conversation_uid);
  const [earliest] = conversation.toSorted(
    (a, b) => a.created_at.getTime() - b.created_at.getTime() || (a.uid < b.uid ? -1 : 1),
  );
  const isShared = (await rootOf(earliest)).factory_uid === (await rootOf(run)).factory_uid;
  const calls = await rowsOf(
    "SELECT *, cost_micros::text AS cost FROM usage_rows WHERE run_uid = $1 ORDER BY recorded_at, call_id",
    uid,
  );
  return {
    ...{
      uid,
      ownerType: run.owner_type,
      ownerUid: run.owner_uid,
      rootRunUid: run.root_run_uid,
      parentRunUid: run.parent_run_uid ?? "",
    },
    ...{
      conversationUid: run.conversation_uid,
      createdAt: run.created_at,
      finishedAt: run.finished_at ?? undefined,
      source: run.source,
    },
    ...{
      state: run.state,
      version: BigInt(run.version),
      agentUid: run.agent_uid ?? "",
      agentName: run.agent_name ?? "",
    },
    ...{ agentType: run.agent_name?.toUpperCase() ?? "", modelId: run.model_id, harness: "oz" },
    costOwner: await ownerOf(run),
    inferenceOwner: await ownerOf(isShared ? earliest : run),
    modelCalls: calls.map((call) => ({
      ...{ callId: call.call_id, recordedAt: call.recorded_at, modelId: call.model_id },
      ...{ inputTokens: bigintOf(call.input_tokens), outputTokens: bigintOf(call.output_tokens) },
      ...{ cacheReadTokens: bigintOf(call.cache_read_tokens), cacheWriteTokens: bigintOf(call.cache_write_tokens) },
      ...{ costMicros: bigintOf(call.cost), priceVersion: call.price_version ?? undefined },
    })),
  };
}

const bigintOf = (value: string | number | null) => (value === null ? undefined : BigInt(value));
function fieldsOf<T extends { $typeName: string }>(message: T): Omit<T, "$typeName"> {
  const { $typeName: _, ...fields } = message;
  return fields;
}
const shown = ({
  $typeName: _type,
  computeIntervals: _intervals,
  pullRequests: _pulls,
  personFollowUps: _followUps,
  ...facts
}: orchestrator.RunFacts) => ({
  ...facts,
  createdAt: timeOf(facts.createdAt),
  finishedAt: timeOf(facts.finishedAt),
  costOwner: fieldsOf(facts.costOwner!),
  inferenceOwner: fieldsOf(facts.inferenceOwner!),
  modelCalls: facts.modelCalls.map((call) => ({ ...fieldsOf(call), recordedAt: timeOf(call.recordedAt) })),
});

describe("ListRunFacts", () => {
  test("returns the stored facts of trees that share a conversation", async () => {
    const runs = Object.values(await sharedConversation());
    const found = await listFacts(...runs.map(({ uid }) => uid));
    expect(found).toHaveLength(runs.length);
    for (const { uid } of runs)
      expect(shown(found.find((facts) => facts.uid === uid)!)).toEqual(await expectedFacts(uid));
  });

  test("attributes inference to the earliest run of the conversation within a factory, and compute to the run itself", async () => {
    const { root, child, again, elsewhere } = await sharedConversation();
    const owners = new Map(
      (await listFacts(root.uid, child.uid, again.uid, elsewhere.uid)).map(({ uid, costOwner, inferenceOwner }) => [
        uid,
        [costOwner?.runUid, inferenceOwner?.runUid],
      ]),
    );
    expect(owners.get(root.uid)).toEqual([root.uid, root.uid]);
    expect(owners.get(child.uid)).toEqual([child.uid, child.uid]); // a child has a conversation of its own
    expect(owners.get(again.uid)).toEqual([again.uid, root.uid]);
    expect(owners.get(elsewhere.uid)).toEqual([elsewhere.uid, elsewhere.uid]);
  });

  test("attributes a child to the factory, the source and the creator of its root", async () => {
    const { root, child } = await sharedConversation();
    const [rootRow] = await rowsOf("SELECT factory_uid, creator_uid FROM runs WHERE uid = $1", root.uid);
    const { costOwner, source } = await factsOf(child.uid);
    expect(source).toBe("ORCHESTRATION");
    expect(costOwner).toMatchObject({
      rootRunUid: root.uid,
      factoryUid: rootRow.factory_uid,
      source: "WEB_APP",
      creatorType: "user",
      creatorUid: rootRow.creator_uid,
    });
  });

  test("prices model calls as recorded, and leaves unknown counts and costs absent", async () => {
    const { root, again } = await sharedConversation();
    const [first, second] = (await factsOf(root.uid)).modelCalls;
    expect(first).toMatchObject({
      callId: "a",
      modelId: "priced",
      inputTokens: 30n,
      outputTokens: 12n,
      costMicros: 54n,
      priceVersion: 3,
    });
    expect([second!.callId, second!.modelId, second!.costMicros, second!.priceVersion]).toEqual([
      "b",
      "unknown-model",
      undefined,
      undefined,
    ]);
    const [unmeasured] = (await factsOf(again.uid)).modelCalls;
    expect([unmeasured!.callId, unmeasured!.inputTokens, unmeasured!.outputTokens, unmeasured!.costMicros]).toEqual([
      "a",
      undefined,
      undefined,
      undefined,
    ]);
  });

  test.each(["FOREMAN", "TRIAGE", "SPEC", "IMPLEMENT", "REVIEW", "VERIFY", "CUSTOM"])(
    "returns the agent type %s that the agent had when the run was created",
    async (type) => {
      const agent = anAgent(type);
      const run = await p.run(caller, { agentUid: agent.uid });
      p.known.agents.set(agent.uid, { ...p.known.agents.get(agent.uid), agentType: "CUSTOM" });
      expect(await factsOf(run.uid)).toMatchObject({
        agentType: type,
        agentUid: agent.uid,
        agentName: type.toLowerCase(),
      });
      await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
    },
  );

  test("returns SELF_IMPROVEMENT for runs of that source, whatever their agent is", async () => {
    const scoring = serviceCaller("scoring", newUid(), caller.principal, caller.teams);
    const owner = { type: "team" as const, uid: teamOf(caller) };
    const { uid } = await p.run(scoring, { owner, source: "SELF_IMPROVEMENT", agentUid: anAgent("FOREMAN").uid });
    expect(await factsOf(uid)).toMatchObject({ agentType: "SELF_IMPROVEMENT", source: "SELF_IMPROVEMENT" });
    await p.life.cancelRun(caller, { runUid: uid, tree: false });
  });

  test("returns no agent type without an agent, nor of a run from before agent types were stored", async () => {
    const [bare, old] = [await p.run(caller), await p.run(caller, { agentUid: anAgent("SPEC").uid })];
    await rowsOf("UPDATE runs SET frozen = frozen - 'agent_type' WHERE uid = $1", old.uid);
    expect(await listFacts(bare.uid, old.uid)).toMatchObject([{ agentType: "" }, { agentType: "" }]);
    for (const { uid } of [bare, old]) await p.life.cancelRun(caller, { runUid: uid, tree: false });
  });

  test("returns the model that a third-party harness is configured with", async () => {
    const run = await p.run(caller, { config: { harness: { type: "claude", model_id: "claude-opus-4-5" } } });
    expect(await factsOf(run.uid)).toMatchObject({
      harness: "claude",
      modelId: "claude-opus-4-5",
      costOwner: { modelId: "claude-opus-4-5" },
    });
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });

  test("returns a pull request once, with what was recorded when it was opened and the time at which it was first named", async () => {
    const run = await p.run(caller);
    const [opened, named] = ["https://github.com/Acme/App/pull/7", "https://github.com/acme/other/pull/8"];
    await rowsOf(
      `INSERT INTO pull_requests (uid, run_uid, code_host_uid, kind, owner, repo, number, url, title, body, head_branch, base_branch, head_sha, status, artifact_uid, created_at)
       VALUES (gen_random_uuid(), $1, gen_random_uuid(), 'github', 'Acme', 'App', 7, $2, 'Add a page', '', 'agent/x', 'main', 'abc', 'open', gen_random_uuid(), '2026-11-20T10:00:05Z')`,
      ...[run.uid, opened],
    );
    for (const [n, url, at] of [
      [1, opened.toLowerCase(), "10:00:04"],
      [2, `${named}/`, "10:00:06"],
      [3, named, "10:00:07"],
    ] as const)
      await rowsOf(
        `INSERT INTO artifacts (uid, run_uid, client_artifact_id, execution_id, artifact_type, data, created_at, committed_at)
         VALUES (gen_random_uuid(), $1, $2, 1, 'PULL_REQUEST', jsonb_build_object('url', $3::text), $4, now())`,
        ...[run.uid, `named ${n}`, url, `2026-11-20T${at}Z`],
      );
    const { pullRequests } = await factsOf(run.uid);
    expect(
      pullRequests.map((pull) => [
        pull.url,
        pull.codeHostKind,
        pull.repository,
        pull.number,
        pull.title,
        timeOf(pull.createdAt)?.toISOString(),
      ]),
    ).toEqual([
      [opened, "github", "Acme/App", 7, "Add a page", "2026-11-20T10:00:04.000Z"],
      [`${named}/`, "", "", 0, "", "2026-11-20T10:00:06.000Z"],
    ]);
    const [pull] = pullRequests;
    expect([pull!.additions, pull!.deletions, pull!.changedFiles, pull!.numCommits]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });

  test("leaves out unknown and malformed uids, and refuses more than 200", async () => {
    const run = await p.run(caller);
    expect((await listFacts(newUid(), "nonsense", run.uid, run.uid)).map(({ uid }) => uid)).toEqual([run.uid]);
    expect(await listFacts(...Array.from({ length: 200 }, () => newUid()))).toEqual([]);
    await expect(listFacts(...Array.from({ length: 201 }, () => newUid()))).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "runs_count" }),
    );
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });
});

describe("follow-ups of users", () => {
  const followUp = (who: Caller, runUid: string) =>
    p.life.createFollowup(who, { target: { runUid }, message: "And now?", mode: "", attachmentUids: [] });
  const count = async (uid: string) => (await factsOf(uid)).personFollowUps;

  test("count in every state of the run; its prompt does not", async () => {
    const run = await p.run(caller);
    expect(await count(run.uid)).toBe(0);
    await followUp(caller, run.uid);
    const execution = await startExecution(p, worker);
    await followUp(caller, run.uid);
    expect(await count(run.uid)).toBe(2);
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
    await execution.complete("CANCELLED");
  });

  test("do not count when an agent sends them, with a run token or under its own identity", async () => {
    const run = await p.run(caller);
    const binding = { runUid: run.uid, rootRunUid: run.rootRunUid, executionId: "1", attempt: 1 };
    await followUp({ ...caller, run: binding }, run.uid);
    await followUp({ ...caller, principal: { type: "agent", uid: newUid() } }, run.uid);
    expect(await count(run.uid)).toBe(0);
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });

  test("do not count when an event of a code host or another automation continues the conversation", async () => {
    const run = await p.run(caller);
    const factories = serviceCaller("factories", newUid(), caller.principal, caller.teams);
    const owner = { type: "team" as const, uid: teamOf(caller) };
    await p.life.continueConversation(
      factories,
      aRun(caller, { owner, prompt: "A comment.", conversationUid: run.conversationUid, causeKey: newUid() }),
    );
    expect(await rowsOf("SELECT author_type FROM messages WHERE run_uid = $1 AND kind = 'followup'", run.uid)).toEqual([
      { author_type: "user" },
    ]);
    expect(await count(run.uid)).toBe(0);
    // As written by the previous version.
    await rowsOf("UPDATE messages SET by_person = NULL WHERE run_uid = $1", run.uid);
    expect(await count(run.uid)).toBe(0);
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });

  test("count by author if the previous version recorded it", async () => {
    const run = await p.run(caller);
    await followUp(caller, run.uid);
    await followUp({ ...caller, principal: { type: "agent", uid: newUid() } }, run.uid);
    await rowsOf("UPDATE messages SET by_person = NULL WHERE run_uid = $1", run.uid);
    expect(await count(run.uid)).toBe(1);
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });
});

describe("WalkRuns", () => {
  test("lists all runs of teams once, oldest first, in pages", async () => {
    const own = [];
    for (let n = 0; n < 5; n += 1) own.push((await p.run(caller)).uid);
    const person = { ...caller, personal: ["run.create", "run.view", "run.manage"] as const };
    const personal = await p.run(person, { owner: { type: "user", uid: caller.principal.uid } });
    const found: string[] = [];
    for (let page = await walk(3); ; page = await walk(3, page.nextPageToken)) {
      found.push(...page.runUids);
      expect(page.runUids.length).toBeLessThanOrEqual(3);
      if (page.nextPageToken === "") break;
    }
    const expected = await rowsOf("SELECT uid FROM runs WHERE owner_type = 'team' ORDER BY created_at, uid");
    expect(found).toEqual(expected.map(({ uid }) => uid));
    expect(found.slice(-5)).toEqual(own);
    expect(found).not.toContain(personal.uid);
    for (const uid of own) await p.life.cancelRun(caller, { runUid: uid, tree: false });
    await p.life.cancelRun(person, { runUid: personal.uid, tree: false });
  });

  test("includes runs that are created during the walk", async () => {
    const [first, second] = [await p.run(caller), await p.run(caller)];
    let page = await walk(1);
    while (page.runUids[0] !== first.uid) page = await walk(1, page.nextPageToken);
    const third = await p.run(caller);
    expect(await walk(10, page.nextPageToken)).toMatchObject({ runUids: [second.uid, third.uid], nextPageToken: "" });
    for (const { uid } of [first, second, third]) await p.life.cancelRun(caller, { runUid: uid, tree: false });
  });

  test.each(["nonsense", "AAAA"])("refuses the page token %s", async (token) => {
    await expect(walk(3, token)).rejects.toEqual(domainError({ reason: "invalid_cursor" }));
  });
});

describe("the facts of runs", () => {
  test("are permitted to the metrics service alone", async () => {
    for (const [client, service] of [
      [p.runFactsByGateway, "gateway"],
      [p.runFactsByScoring, "scoring"],
    ] as const) {
      const self = () => p.as(serviceCaller(service, newUid()));
      await expect(client.listRunFacts({ runUids: [] }, self())).rejects.toEqual(
        domainError({ reason: "service_not_allowed" }),
      );
      await expect(client.walkRuns({}, self())).rejects.toEqual(domainError({ reason: "service_not_allowed" }));
    }
  });

  test("are hidden from users", async () => {
    await expect(p.runFactsByGateway.listRunFacts({ runUids: [] }, p.as(caller))).rejects.toEqual(
      domainError({ reason: "run_not_found" }),
    );
    await expect(p.runFactsByGateway.walkRuns({}, p.as(caller))).rejects.toEqual(
      domainError({ reason: "run_not_found" }),
    );
  });
});
