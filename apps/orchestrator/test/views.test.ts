import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError, eventually } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { enqueueTranscripts } from "../src/storage/store/blob-work.ts";
import { transcriptStore } from "../src/conversations/store/transcript-store.ts";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { acceptExecution, startExecution } from "./support/fake-worker.ts";

let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
beforeEach(async () => {
  p = await catalogPlatform();
  caller = aCaller();
  worker = await p.worker({ slots: 4 });
});
afterEach(() => p.close());

/** Creates a run that wrote text, used a tool and ended. */
async function finishedRun(request: Parameters<CatalogPlatform["run"]>[1] = {}) {
  const run = await p.run(caller, request);
  const execution = await startExecution(p, worker);
  await execution.append(
    execution.event("model_step", { step_id: "s1", text: "I will look.", tool_calls: [] }),
    execution.event("tool_start", {
      call_id: "c1",
      name: "run_command",
      category: "command",
      input: { command: "ls" },
    }),
    execution.event("tool_end", {
      call_id: "c1",
      name: "run_command",
      category: "command",
      state: "completed",
      output: { exit_code: 0, output: "a", truncated: false },
    }),
    execution.event("sandbox_stopped", { reason: "done" }),
  );
  await execution.complete("DONE");
  return { run, execution };
}

type Step = {
  id: string;
  messages: { role: string; content: Record<string, unknown>[] }[];
  steps: Step[];
  description?: string;
};
const conversation = async (runUid: string, who = caller) =>
  (await p.conversations.getConversation({ runUid }, p.as(who))).steps as unknown as Step[];

test("the timeline has the published names in their order", async () => {
  const { run } = await finishedRun();
  const { events } = await p.conversations.getTimeline({ runUid: run.uid }, p.as(caller));
  expect(events.map(({ eventType }) => eventType)).toEqual([
    ...[
      "oz_run_created",
      "oz_run_claimed",
      "worker_container_ready",
      "shared_session_started",
      "agent_started",
      "vm_shutdown",
      "oz_run_done",
    ],
  ]);
  expect(events.find(({ eventType }) => eventType === "oz_run_claimed")?.payload).toMatchObject({
    worker_host: expect.any(String),
  });
});

describe("the conversation", () => {
  test("of a queued run exists and is empty", async () => {
    const run = await p.run(caller);
    const answer = await p.conversations.getConversation({ runUid: run.uid }, p.as(caller));
    expect(answer).toMatchObject({ conversationUid: run.conversationUid, steps: [] });
  });

  test("contains messages and actions", async () => {
    const { run } = await finishedRun();
    const [step] = await conversation(run.uid);
    expect(step!.messages.map(({ role, content }) => [role, ...content.map(({ type }) => type)])).toEqual([
      ["user", "text"],
      ["assistant", "text", "action"],
      ["tool", "action_result"],
    ]);
    expect(step).toMatchObject({ steps: [], started_at: expect.any(String), completed_at: expect.any(String) });
  });

  test("retains what a lost attempt did, reports the loss of its worker, and continues", async () => {
    const run = await p.run(caller);
    const lost = await startExecution(p, worker);
    await lost.append(lost.event("model_step", { text: "half an answer" }));
    await p.expire(lost.ref.executionId);
    await p.reaperIsAwake();
    await p.life.reapOnce();
    const execution = await acceptExecution(p, worker);
    await execution.append(
      execution.event("agent_resumed", { session_id: "s", text: "You go on." }),
      execution.event("model_step", { text: "another answer" }),
    );
    const texts = (await conversation(run.uid)).flatMap(({ messages }) =>
      messages.flatMap(({ content }) => content.map((block) => block["text"] ?? block["name"])),
    );
    expect(texts).toEqual(["Do it.", "half an answer", "worker_lost", "agent_resumed", "another answer"]);
  });

  test("nests child runs with their own messages, and shows them only to those who may read them", async () => {
    const parent = await p.run(caller);
    const execution = await startExecution(p, worker);
    const { run: child } = await finishedRun({ parentRunUid: parent.uid, title: "The child" });
    await execution.append(
      execution.event("tool_start", {
        call_id: "c1",
        name: "spawn_run",
        category: "integration",
        input: { agent: "a" },
      }),
      execution.event("tool_end", {
        call_id: "c1",
        name: "spawn_run",
        category: "integration",
        state: "completed",
        output: { run_id: child.uid },
      }),
    );
    const [step] = await conversation(parent.uid);
    expect(step!.steps).toMatchObject([
      {
        id: child.uid,
        description: "The child",
        messages: [{ role: "user" }, { role: "assistant" }, { role: "tool" }],
      },
    ]);
    await expect(conversation(parent.uid, aCaller())).rejects.toEqual(domainError({ reason: "run_not_found" }));
  });

  test("by its own uid contains every visible run of it", async () => {
    const { run } = await finishedRun();
    await finishedRun({ conversationUid: run.conversationUid, prompt: "Go on." });
    const { steps } = await p.conversations.getConversation({ conversationUid: run.conversationUid }, p.as(caller));
    expect(steps).toHaveLength(2);
    for (const [conversationUid, who] of [
      [run.conversationUid, aCaller()],
      [newUid(), caller],
      ["nonsense", caller],
    ] as const) {
      await expect(p.conversations.getConversation({ conversationUid }, p.as(who))).rejects.toEqual(
        domainError({ reason: "conversation_not_found" }),
      );
    }
  });
});

describe("events", () => {
  test("are returned in pages, without gaps", async () => {
    const { run } = await finishedRun();
    const all = await p.runEvents.listRunEvents({ runUid: run.uid }, p.as(caller));
    expect(all.events.map(({ seq }) => Number(seq))).toEqual(all.events.map((_, n) => n + 1));
    const seen: bigint[] = [];
    for (let afterSeq = 0n; ;) {
      const page = await p.runEvents.listRunEvents({ runUid: run.uid, afterSeq, pageSize: 4 }, p.as(caller));
      seen.push(...page.events.map(({ seq }) => seq));
      afterSeq = seen.at(-1)!;
      if (!page.hasMore) break;
    }
    expect(seen).toHaveLength(all.events.length);
  });

  /** Collects a stream in the background. */
  function watch(runUid: string, afterSeq = 0n) {
    const events: orchestrator.RunEvent[] = [];
    const stopped = new AbortController();
    const ended = (async () => {
      for await (const batch of p.runEvents.watchRunEvents(
        { runUid, afterSeq },
        p.as(caller, { timeoutMs: 0, signal: stopped.signal }),
      ))
        events.push(...batch.events);
    })();
    return { events, ended, stop: () => stopped.abort() };
  }

  test("are streamed live from the reader's cursor, and end with the run", async () => {
    const run = await p.run(caller);
    const [whole, later] = [watch(run.uid), watch(run.uid, 2n)];
    await eventually(() => expect(whole.events.length).toBeGreaterThan(0));
    const execution = await startExecution(p, worker);
    await eventually(() => expect(whole.events.map(({ kind }) => kind)).toContain("agent_started"));
    await execution.complete("DONE");
    await Promise.all([whole.ended, later.ended]);
    const stored = await p.events(run.uid);
    expect(whole.events.map(({ seq }) => Number(seq))).toEqual(stored.map(({ seq }) => seq));
    expect(later.events.map(({ seq }) => Number(seq))).toEqual(stored.slice(2).map(({ seq }) => seq));
    expect(whole.events.at(-1)?.kind).toBe("run_finished");
  });

  test("of an ended run are streamed once, and the stream ends", async () => {
    const { run } = await finishedRun();
    const watched = watch(run.uid);
    await watched.ended;
    expect(watched.events).toHaveLength((await p.events(run.uid)).length);
  });

  test("send keep-alives while there are none", async () => {
    const run = await p.run(caller);
    const stopped = new AbortController();
    let batches = 0;
    const ended = (async () => {
      for await (const { events } of p.runEvents.watchRunEvents(
        { runUid: run.uid, afterSeq: 1n },
        p.as(caller, { timeoutMs: 0, signal: stopped.signal }),
      ))
        if (events.length === 0) batches++;
    })();
    await eventually(() => expect(batches).toBeGreaterThan(1));
    stopped.abort();
    await expect(ended).rejects.toEqual(domainError({ kind: "unavailable" }));
  });

  test("are visible to no other team", async () => {
    const { run } = await finishedRun();
    const stream = (async () => {
      for await (const _ of p.runEvents.watchRunEvents({ runUid: run.uid }, p.as(aCaller())))
        throw new Error("an event of another team");
    })();
    await expect(stream).rejects.toEqual(domainError({ reason: "run_not_found" }));
    await expect(p.runEvents.listRunEvents({ runUid: run.uid }, p.as(aCaller()))).rejects.toEqual(
      domainError({ reason: "run_not_found" }),
    );
  });
});

describe("the transcript", () => {
  const lines = async (runUid: string) =>
    (await p.follow("GET", (await p.conversations.getTranscriptUrl({ runUid }, p.as(caller))).url))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { seq: number });

  test("contains every event; of a run in progress, those up to now", async () => {
    const run = await p.run(caller);
    await expect(lines(run.uid)).rejects.toEqual(domainError({ reason: "transcript_not_found" }));
    const execution = await startExecution(p, worker);
    const before = await lines(run.uid);
    await execution.complete("DONE");
    const after = await lines(run.uid);
    expect(after.map(({ seq }) => seq)).toEqual((await p.events(run.uid)).map(({ seq }) => seq));
    expect(before).toEqual(after.slice(0, before.length));
  });

  test("is written by work when an execution ends; writing it again changes nothing", async () => {
    const { run, execution } = await finishedRun();
    await p.database.transaction((tx) => enqueueTranscripts(tx, [{ runUid: run.uid, ...execution.ref }]));
    await p.work.drain();
    const { rows } = await p.database.sql.query<{ blob_key: string }>(
      "SELECT blob_key FROM transcripts WHERE run_uid = $1",
      [run.uid],
    );
    expect(await p.blobs.get(rows[0]!.blob_key)).toBeDefined();
    expect((await p.work.counts()).filter(({ state }) => state === "dead_lettered")).toEqual([]);
    await lines(run.uid);
    const again = await p.database.sql.query<{ blob_key: string }>(
      "SELECT blob_key FROM transcripts WHERE run_uid = $1",
      [run.uid],
    );
    expect(again.rows).toEqual(rows);
  });

  test("leaves no unreferenced blob, also when a shorter one is written late", async () => {
    const { run } = await finishedRun();
    const { sql } = p.database;
    const replace = (lastSeq: number) => transcriptStore.replace(sql, run.uid, { blobKey: `t-${lastSeq}`, lastSeq });
    const unneeded = [];
    for (const lastSeq of [1005, 1007, 1006, 1007]) unneeded.push(await replace(lastSeq));
    expect(unneeded.slice(1)).toEqual(["t-1005", "t-1006", undefined]);
    expect(await transcriptStore.find(sql, run.uid)).toEqual({ blobKey: "t-1007", lastSeq: 1007 });
  });

  test("is visible to no other team", async () => {
    const { run } = await finishedRun();
    await expect(p.conversations.getTranscriptUrl({ runUid: run.uid }, p.as(aCaller()))).rejects.toEqual(
      domainError({ reason: "run_not_found" }),
    );
  });
});

describe("a conversation described for a task", () => {
  test("has its first and newest run and the outputs of the whole trees, newest first, without plans", async () => {
    const root = await p.run(caller, { prompt: "Root." });
    const execution = await startExecution(p, worker);
    const child = await p.run(caller, { parentRunUid: root.uid });
    const childExecution = await startExecution(p, worker);
    const report = (of: typeof execution, clientArtifactId: string, artifactType: string) =>
      p.workers.createArtifact(
        {
          ...{ executionId: BigInt(of.ref.executionId), attempt: of.ref.attempt, clientArtifactId, artifactType },
          ...{ data: { filepath: clientArtifactId, title: clientArtifactId }, content: new TextEncoder().encode("x") },
        },
        bearer(worker),
      );
    await report(execution, "plan", "PLAN");
    await report(execution, "first.txt", "FILE");
    await report(childExecution, "second.txt", "FILE");
    await execution.complete("DONE");
    const next = await p.run(caller, { conversationUid: root.conversationUid });
    for (const target of [{ conversationUid: root.conversationUid }, { runUid: root.uid }, { runUid: child.uid }]) {
      const found = await p.conversations.describeConversation(target, p.as(caller));
      expect([found.conversationUid, found.firstRun?.uid, found.newestRun?.uid]).toEqual([
        root.conversationUid,
        root.uid,
        next.uid,
      ]);
      expect(found.outputs.map(({ data }) => data?.["filename"])).toEqual(["second.txt", "first.txt"]);
    }
  });

  test("of a team contains the team's runs and their outputs only, not those of the caller's personal run in it", async () => {
    const root = await p.run(caller, { prompt: "The team's." });
    const ofTeam = await startExecution(p, worker);
    const personal = await p.run(caller, {
      owner: { type: "user", uid: caller.principal.uid },
      conversationUid: root.conversationUid,
    });
    const ofPerson = await startExecution(p, worker);
    for (const [of, name] of [
      [ofTeam, "team.txt"],
      [ofPerson, "mine.txt"],
    ] as const) {
      const report = {
        clientArtifactId: name,
        artifactType: "FILE",
        data: { filepath: name, title: name },
        content: new TextEncoder().encode("x"),
      };
      await p.workers.createArtifact(
        { executionId: BigInt(of.ref.executionId), attempt: of.ref.attempt, ...report },
        bearer(worker),
      );
    }
    const described = async (teamUid: string) => {
      const found = await p.conversations.describeConversation(
        { conversationUid: root.conversationUid, teamUid },
        p.as(caller),
      );
      return [found.newestRun?.uid, found.outputs.map(({ data }) => data?.["filename"])];
    };
    expect(await described(caller.teams[0]!.teamUid)).toEqual([root.uid, ["team.txt"]]);
    expect(await described("")).toEqual([personal.uid, ["mine.txt", "team.txt"]]);
    await expect(described(newUid())).rejects.toEqual(domainError({ reason: "conversation_not_found" }));
  });

  test("is unknown to other teams", async () => {
    const run = await p.run(caller);
    for (const [target, who] of [
      [{ conversationUid: run.conversationUid }, aCaller()],
      [{ runUid: run.uid }, aCaller()],
      [{ runUid: newUid() }, caller],
      [{}, caller],
    ] as const) {
      await expect(p.conversations.describeConversation(target, p.as(who))).rejects.toEqual(
        domainError({ reason: "conversation_not_found" }),
      );
    }
  });
});

describe("the state of conversations", () => {
  test("is that of their newest run, with the outputs of their own runs on request; unknown ones are omitted", async () => {
    const root = await p.run(caller, { prompt: "Root.", metadata: { ticket_id: "7" } });
    const execution = await startExecution(p, worker);
    const report = {
      clientArtifactId: "a",
      artifactType: "FILE",
      data: { filepath: "a.txt", title: "a" },
      content: new TextEncoder().encode("x"),
    };
    await p.workers.createArtifact(
      { executionId: BigInt(execution.ref.executionId), attempt: execution.ref.attempt, ...report },
      bearer(worker),
    );
    await execution.complete("DONE");
    const next = await p.run(caller, { conversationUid: root.conversationUid });
    const ask = (withOutputs: boolean, who = caller) =>
      p.conversations.describeConversations(
        { conversationUids: [root.conversationUid, newUid(), "x"], withOutputs },
        p.as(who),
      );
    const [described, ...others] = (await ask(true)).conversations;
    expect(others).toEqual([]);
    expect(described).toMatchObject({
      conversationUid: root.conversationUid,
      hidden: false,
      runUid: next.uid,
      state: "QUEUED",
      isRunTypeCancellable: true,
      ownerType: "team",
      creatorUid: next.creatorUid,
    });
    expect(described!.outputs.map(({ data }) => data?.["filename"])).toEqual(["a.txt"]);
    expect((await ask(false)).conversations[0]!.outputs).toEqual([]);
    expect((await ask(true, aCaller())).conversations).toMatchObject([
      {
        conversationUid: root.conversationUid,
        hidden: true,
        runUid: "",
        state: "",
        ownerUid: "",
        creatorUid: "",
        outputs: [],
      },
    ]);
  });

  test("is returned for at most 100 at once", async () => {
    const conversationUids = Array.from({ length: 101 }, () => newUid());
    await expect(p.conversations.describeConversations({ conversationUids }, p.as(caller))).rejects.toEqual(
      domainError({ reason: "too_many_conversations" }),
    );
  });
});

test("the duration of a run includes the active execution", async () => {
  await p.run(caller);
  const execution = await startExecution(p, worker);
  await p.database.sql.query("UPDATE executions SET claimed_at = claimed_at - interval '90 seconds' WHERE id = $1", [
    execution.ref.executionId,
  ]);
  const [live] = (await p.runs.listRuns({}, p.as(caller))).runs;
  expect(Number(live!.runTimeMs)).toBeGreaterThanOrEqual(90_000);
  expect(live).toMatchObject({
    isSandboxRunning: true,
    isRunTypeCancellable: true,
    debugAgentAvailable: false,
    state: "INPROGRESS",
    sessionUid: "session",
  });
});
