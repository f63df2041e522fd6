import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import { serviceCaller, type Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";
import { teamOf } from "./support/platform.ts";

let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
beforeAll(async () => {
  p = await catalogPlatform();
  worker = await p.worker({ slots: 20 });
});
beforeEach(() => void (caller = aCaller()));
afterAll(() => p.close());

const scoring = () => p.as(serviceCaller("scoring", newUid()));
const describeRuns = async (...runUids: string[]) => (await p.evidence.describeRuns({ runUids }, scoring())).runs;

/** Completes an execution that stores its workspace. */
async function completeWithWorkspace(execution: ActiveExecution) {
  const content = new TextEncoder().encode("tar");
  const sha256 = createHash("sha256").update(content).digest("hex");
  const { snapshotKey, uploadUrl } = await p.workers.putSnapshot(
    { ...execution.lease, sizeBytes: 3n, sha256 },
    bearer(worker),
  );
  await p.follow("PUT", uploadUrl, content);
  await execution.complete("DONE", { snapshotKey });
}

describe("DescribeRuns", () => {
  test("returns owner, times, usage, cost, tokens, conversation and workspace of a run that ended", async () => {
    const run = await p.run(caller, { title: "Add a page" });
    const execution = await startExecution(p, worker);
    await execution.append(execution.event("model_step", { step_id: "s1", text: "Done.", tool_calls: [] }));
    await p.workers.reportUsage(
      { ...execution.lease, callId: "c1", modelId: "scripted", usage: { inputTokens: 30n, outputTokens: 12n } },
      bearer(worker),
    );
    await completeWithWorkspace(execution);
    const [described] = await describeRuns(run.uid);
    expect(described).toMatchObject({
      ...{
        uid: run.uid,
        ownerType: "team",
        ownerUid: teamOf(caller),
        factoryUid: "",
        agentUid: "",
        ancestorAgentUids: [],
        source: "API",
        state: "SUCCEEDED",
      },
      ...{
        title: "Add a page",
        creatorUid: run.creatorUid,
        conversationUid: run.conversationUid,
        hasConversation: true,
        hasWorkspace: true,
        errorCode: "",
      },
      ...{ costMicros: 0n, totalTokens: 42n, requestUsage: { total_tokens: 42 } },
      ...{ createdAt: expect.anything(), startedAt: expect.anything(), finishedAt: expect.anything() },
    });
    expect(described!.version).toBe(BigInt((await p.getRun(caller, run.uid)).version));
  });

  test("returns no conversation, usage or workspace of a run that no agent has worked on", async () => {
    const run = await p.run(caller);
    const [described] = await describeRuns(run.uid);
    expect(described).toMatchObject({
      state: "QUEUED",
      hasConversation: false,
      hasWorkspace: false,
      totalTokens: 0n,
      costMicros: 0n,
    });
    expect(described!.requestUsage).toBeUndefined();
    expect(described!.startedAt).toBeUndefined();
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });

  test("returns the error code of a run that failed, and no conversation when only its setup ran", async () => {
    const run = await p.run(caller);
    const execution = await startExecution(p, worker);
    await execution.complete("FAILED", {
      error: { code: "environment_setup_failed", message: "No.", retryable: false, reason: "setup_failed" },
    });
    expect(await describeRuns(run.uid)).toMatchObject([
      { state: "FAILED", errorCode: "environment_setup_failed", hasConversation: false, hasWorkspace: false },
    ]);
  });

  test("names the agents of all runs above a run, nearest first and each once", async () => {
    const [parentAgent, rootAgent, ownAgent] = [newUid(), newUid(), newUid()];
    for (const uid of [parentAgent, rootAgent, ownAgent])
      p.known.agents.set(uid, { agentUid: uid, agentName: "agent" });
    const root = await p.run(caller, { agentUid: rootAgent });
    const middle = await p.run(caller, { agentUid: parentAgent, parentRunUid: root.uid });
    const inner = await p.run(caller, { agentUid: parentAgent, parentRunUid: middle.uid });
    const run = await p.run(caller, { agentUid: ownAgent, parentRunUid: inner.uid });
    const byUid = new Map((await describeRuns(run.uid, root.uid)).map((described) => [described.uid, described]));
    expect(byUid.get(run.uid)).toMatchObject({ agentUid: ownAgent, ancestorAgentUids: [parentAgent, rootAgent] });
    expect(byUid.get(root.uid)).toMatchObject({ agentUid: rootAgent, ancestorAgentUids: [] });
    await p.life.cancelRun(caller, { runUid: root.uid, tree: true });
  });

  test("leaves out unknown and malformed uids, and refuses more than 500", async () => {
    const run = await p.run(caller);
    expect((await describeRuns(newUid(), "nonsense", run.uid)).map(({ uid }) => uid)).toEqual([run.uid]);
    expect(await describeRuns(...Array.from({ length: 500 }, () => newUid()))).toEqual([]);
    await expect(describeRuns(...Array.from({ length: 501 }, () => newUid()))).rejects.toEqual(
      domainError({ reason: "runs_count" }),
    );
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });

  test("is permitted to the scoring service alone", async () => {
    const run = await p.run(caller);
    await expect(
      p.evidenceByGateway.describeRuns({ runUids: [run.uid] }, p.as(serviceCaller("gateway", newUid()))),
    ).rejects.toEqual(domainError({ reason: "service_not_allowed" }));
    await expect(p.evidenceByGateway.describeRuns({ runUids: [run.uid] }, p.as(caller))).rejects.toEqual(
      domainError({ reason: "run_not_found" }),
    );
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });
});

describe("GetRunEvidence", () => {
  const evidenceOf = (runUid: string) => p.evidence.getRunEvidence({ runUid }, scoring());
  const edit = (
    execution: ActiveExecution,
    callId: string,
    name: string,
    input: Record<string, string>,
    state = "completed",
  ) => [
    execution.event("model_step", { step_id: callId, text: "", tool_calls: [{ call_id: callId, name, input }] }),
    execution.event("tool_start", { call_id: callId, name: "edit_files", category: "files", input: {} }),
    execution.event("tool_end", { call_id: callId, name: "edit_files", category: "files", state, output: {} }),
  ];

  test("returns prompt, final message, conversation, edits and artifacts of a run that ended", async () => {
    const run = await p.run(caller, { prompt: "Add a page." });
    const execution = await startExecution(p, worker);
    await execution.append(
      ...edit(execution, "c1", "write_file", { path: "page.html", content: "<h1>Hi</h1>\n" }),
      ...edit(execution, "c2", "edit_file", { path: "index.md", old: "old line", new: "new line\nanother" }),
      ...edit(execution, "c3", "write_file", { path: "refused.txt", content: "x" }, "failed"),
      execution.event("model_step", { step_id: "s1", text: "The page is there.", tool_calls: [] }),
    );
    await p.workers.createArtifact(
      {
        ...execution.lease,
        clientArtifactId: "plan",
        artifactType: "PLAN",
        data: { title: "Plan" },
        content: new TextEncoder().encode("# Plan"),
      },
      bearer(worker),
    );
    await execution.complete("DONE");
    const evidence = await evidenceOf(run.uid);
    expect(evidence).toMatchObject({
      run: { uid: run.uid, state: "SUCCEEDED", hasConversation: true },
      prompt: "Add a page.",
      finalMessage: "The page is there.",
      artifacts: [{ artifactType: "PLAN" }],
    });
    expect(evidence.diff).toBe(
      "# Edits by the agent, in their order\n--- /dev/null\n+++ b/page.html\n@@ whole file @@\n+<h1>Hi</h1>\n--- a/index.md\n+++ b/index.md\n@@ edit @@\n-old line\n+new line\n+another\n",
    );
    const shown = (await p.conversations.getConversation({ runUid: run.uid }, p.as(caller))).steps;
    expect(JSON.parse(evidence.conversationJson)).toEqual({
      conversation_id: run.conversationUid,
      steps: JSON.parse(JSON.stringify(shown)),
    });
  });

  test("includes what child runs did and stored", async () => {
    const parent = await p.run(caller, { prompt: "Delegate." });
    const execution = await startExecution(p, worker);
    const child = await p.run(caller, { prompt: "Do a part.", parentRunUid: parent.uid });
    const inner = await startExecution(p, worker);
    await inner.append(...edit(inner, "c1", "write_file", { path: "part.txt", content: "part" }));
    await p.workers.createArtifact(
      {
        ...inner.lease,
        clientArtifactId: "plan",
        artifactType: "PLAN",
        data: { title: "Part" },
        content: new TextEncoder().encode("# Part"),
      },
      bearer(worker),
    );
    await inner.complete("DONE");
    await execution.complete("DONE");
    const evidence = await evidenceOf(parent.uid);
    expect([evidence.conversationJson, evidence.diff]).toEqual([
      expect.stringContaining(child.uid),
      expect.stringContaining("+++ b/part.txt"),
    ]);
    expect(evidence.artifacts).toMatchObject([{ runUid: child.uid }]);
  });

  test("returns the conversation of a personal run too", async () => {
    const person = { ...caller, personal: ["run.create", "run.view", "run.manage"] as const };
    const run = await p.run(person, { owner: { type: "user", uid: caller.principal.uid } });
    const execution = await startExecution(p, worker);
    await execution.append(execution.event("model_step", { step_id: "s1", text: "Mine.", tool_calls: [] }));
    await execution.complete("DONE");
    expect(await evidenceOf(run.uid)).toMatchObject({ finalMessage: "Mine.", diff: "", artifacts: [] });
  });

  test("is refused for unknown runs, and to everyone but the scoring service", async () => {
    for (const uid of [newUid(), "nonsense", ""])
      await expect(evidenceOf(uid)).rejects.toEqual(domainError({ reason: "run_not_found" }));
    const run = await p.run(caller);
    await expect(p.evidenceByGateway.getRunEvidence({ runUid: run.uid }, p.as(caller))).rejects.toEqual(
      domainError({ reason: "run_not_found" }),
    );
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });
});

describe("GetRunRepositories", () => {
  const repositoriesOf = async (runUid: string) =>
    (await p.evidence.getRunRepositories({ runUid }, scoring())).repositories;

  test("returns the commits of a run's first clones, also after it continued on others", async () => {
    const run = await p.run(caller);
    const cloned = (execution: ActiveExecution, name: string, sha: string) =>
      execution.event("repository_cloned", { owner: "acme", name, branch: "agent/x", base_sha: sha.repeat(40) });
    const first = await startExecution(p, worker);
    await first.append(cloned(first, "app", "a"), cloned(first, "lib", "b"));
    await first.complete("DONE");
    await p.life.createFollowup(caller, {
      target: { runUid: run.uid },
      message: "Go on.",
      mode: "normal",
      attachmentUids: [],
    });
    const second = await startExecution(p, worker);
    await second.append(cloned(second, "app", "c"));
    await second.complete("DONE");
    expect(await repositoriesOf(run.uid)).toMatchObject([
      { owner: "acme", repo: "app", commit: "a".repeat(40) },
      { owner: "acme", repo: "lib", commit: "b".repeat(40) },
    ]);
  });

  test("returns none of a run that cloned none, and refuses unknown runs", async () => {
    const run = await p.run(caller);
    expect(await repositoriesOf(run.uid)).toEqual([]);
    for (const uid of [newUid(), "nonsense"])
      await expect(repositoriesOf(uid)).rejects.toEqual(domainError({ reason: "run_not_found" }));
    await p.life.cancelRun(caller, { runUid: run.uid, tree: false });
  });
});
