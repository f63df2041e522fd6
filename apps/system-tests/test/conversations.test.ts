import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { eventsOf, waitForState, RUN_TIMEOUT_MS, runOf, script, spawn, startRun, succeeded } from "./support/runs.ts";
import { followEvents } from "./support/stream.ts";
import { aTeam, teamOf } from "./support/resources.ts";

let platform: Deployment;
let [api, others]: Client[] = [];

beforeAll(async () => {
  platform = await startPlatform({ workers: 1 });
  api = await connect(platform);
  others = await aTeam(api, "others");
});
afterAll(() => platform?.remove());

/** Returns the outputs of a run's commands. */
const outputsOf = async (runId: string): Promise<string[]> =>
  (await eventsOf(api!, runId))
    .filter(({ kind, payload }) => kind === "tool_end" && payload.name === "run_command")
    .map(({ payload }) => payload.output.output);

describe("files for follow-ups", () => {
  const NOTE = { filename: "note.txt", mime_type: "text/plain" };
  const put = (url: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    fetch(url, { method: "PUT", body, headers });
  const prepare = async (target: string, count = 1): Promise<any> =>
    api!.post(`${target}/attachments/prepare`, { files: Array.from({ length: count }, () => NOTE) });
  /** Uploads one file per text and returns the ids. */
  async function files(target: string, ...texts: string[]): Promise<string[]> {
    const { attachments } = await prepare(target, texts.length);
    for (const [at, text] of texts.entries()) {
      const { url, method, headers } = attachments[at].upload_target;
      expect([attachments[at].upload_url, method, (await put(url, text, headers)).status]).toEqual([url, "PUT", 200]);
    }
    return attachments.map((one: any) => one.attachment_id);
  }
  const attached = (...ids: string[]) => ids.map((id) => ({ attachment_id: id }));
  const blocked = async () => waitForState(api!, await startRun(api!, script("ask: Which file?")), "BLOCKED");

  test("reach an active session under their ids and file names", async () => {
    const runId = await startRun(api!, script("say: Waiting."), { interactive: true });
    await eventually(async () => expect((await eventsOf(api!, runId)).map(({ kind }) => kind)).toContain("turn_end"), {
      timeoutMs: RUN_TIMEOUT_MS,
    });
    const [one, two] = await files(`/agent/runs/${runId}`, "first\n", "second\n");
    const message = script(
      `shell: cat /workspace/.attachments/${two}/note.txt "/workspace/.attachments/${one}/read me.txt"`,
    );
    expect(
      await api!.post(`/agent/runs/${runId}/followups`, {
        message,
        attachments: [{ attachment_id: one, file_name: "read me.txt" }, ...attached(two!)],
      }),
    ).toMatchObject({ outcome: "live_session" });
    await eventually(async () => expect(await outputsOf(runId)).toEqual(["second\nfirst\n"]), {
      timeoutMs: RUN_TIMEOUT_MS,
    });
    await api!.post(`/agent/runs/${runId}/cancel`);
  });

  test("reach the sandbox of a run that is continued through its conversation, once per key", async () => {
    const { run_id: runId, conversation_id: conversation } = await blocked();
    const target = `/agent/conversations/${conversation}`;
    expect(await prepare(target)).toMatchObject({ run_id: runId });
    const [id] = await files(target, "the file\n");
    const send = () =>
      api!.post(
        `${target}/followups`,
        { message: script(`shell: cat .attachments/${id}/note.txt`), attachments: attached(id!) },
        { headers: { "idempotency-key": runId } },
      );
    const [first, again] = [await send(), await send()];
    expect([first, again]).toEqual([
      { outcome: "handoff_execution", followup_id: expect.any(String), run_id: runId },
      first,
    ]);
    await succeeded(api!, runId);
    expect(await outputsOf(runId)).toEqual(["the file\n"]);
  });

  test("return unknown_attachment and send nothing unless they were prepared for the newest run and uploaded", async () => {
    const old = await blocked();
    const [ofOld] = await files(`/agent/runs/${old.run_id}`, "old");
    const newer = await waitForState(
      api!,
      await startRun(api!, script("ask: And?"), { conversation_id: old.conversation_id }),
      "BLOCKED",
    );
    const target = `/agent/conversations/${old.conversation_id}`;
    const {
      attachments: [unsent],
    } = await prepare(target);
    const before = await eventsOf(api!, newer.run_id);
    for (const id of [ofOld!, unsent.attachment_id, randomUUID(), "x"]) {
      const answer = await api!.call("POST", `${target}/followups`, {
        body: { message: "m", attachments: attached(id) },
      });
      expect([answer.status, answer.body.error_code, answer.body.retryable]).toEqual([
        422,
        "unknown_attachment",
        false,
      ]);
    }
    expect(await eventsOf(api!, newer.run_id)).toEqual(before);
  });

  test("are limited to 25 files of 25 MB, and a modified link accepts nothing", async () => {
    const { run_id: runId } = await blocked();
    const {
      attachments: [one],
    } = await prepare(`/agent/runs/${runId}`);
    expect(
      (
        await api!.call("POST", `/agent/runs/${runId}/followups`, {
          body: { attachments: attached(...Array.from({ length: 26 }, randomUUID)) },
        })
      ).status,
    ).toBe(400);
    expect((await put(one.upload_url, new Uint8Array(25_000_001))).status).toBe(413);
    for (const change of [
      (url: string) => url.replace(/max=\d+/, "max=99000000"),
      (url: string) => url.replace(/uploads\/[^?]+/, `uploads/${randomUUID()}`),
      (url: string) => url.replace("m=PUT", "m=GET"),
    ]) {
      expect((await put(change(one.upload_url), "x")).status).toBe(403);
    }
    expect((await fetch(one.upload_url)).status).toBe(403);
  });

  test("cannot be prepared, sent or named by another team, as for an unknown run", async () => {
    const { run_id: runId, conversation_id: conversation } = await blocked();
    const [id] = await files(`/agent/runs/${runId}`, "ours");
    for (const target of [`/agent/runs/${runId}`, `/agent/conversations/${conversation}`]) {
      expect((await others!.call("POST", `${target}/attachments/prepare`, { body: { files: [NOTE] } })).status).toBe(
        404,
      );
      expect(
        (await others!.call("POST", `${target}/followups`, { body: { message: "m", attachments: attached(id!) } }))
          .status,
      ).toBe(404);
    }
    const { run_id: theirs } = await others!.post("/agent/runs", { prompt: script("ask: Well?") });
    await waitForState(others!, theirs, "BLOCKED");
    const named = async (one: string) =>
      (({ status, body: { error_code: code, detail } }) => [status, code, detail])(
        await others!.call("POST", `/agent/runs/${theirs}/followups`, {
          body: { message: "m", attachments: attached(one) },
        }),
      );
    expect(await named(id!)).toEqual(await named(randomUUID()));
  });
});

describe("the results of a conversation", () => {
  let run: any;
  let conversation: string;
  beforeAll(async () => {
    const steps = [
      "shell: printf '1 %%\\r\\033[32m100 %%\\033[0m\\n'",
      "shell: {command: exit 3, allow_failure: true}",
      "write: {path: dot.gif, content: GIF89a}",
      "screenshot: dot.gif",
      "ask: More?",
    ];
    run = await waitForState(api!, await startRun(api!, script(...steps)), "BLOCKED", "FAILED");
    conversation = `/agent/conversations/${run.conversation_id}`;
  });
  /** Follows a redirect without credentials. */
  const follow = async (path: string) => {
    const { status, headers } = await api!.call("GET", path);
    expect([status, headers.get("cache-control")]).toEqual([302, "private, no-store"]);
    return api!.fetch(headers.get("location")!);
  };

  test("include the terminal blocks of its commands, by redirect or as a link, across its runs", async () => {
    const { blocks, ...rest } = JSON.parse((await follow(`${conversation}/block-snapshot`)).text);
    expect(rest).toEqual({ version: 1, conversation_id: run.conversation_id });
    expect(blocks.map(({ kind, state, exit_code: code, output }: any) => [kind, state, code, output])).toEqual([
      ["command", "completed", 0, "100 %\n"],
      ["command", "failed", 3, ""],
    ]);
    await succeeded(api!, await startRun(api!, script("shell: echo again"), { conversation_id: run.conversation_id }));
    const { download_url: url, expires_at: until } = await api!.get(`${conversation}/block-snapshot?redirect=false`);
    expect(JSON.parse((await api!.fetch(url)).text).blocks.map((block: any) => block.output)).toEqual([
      "100 %\n",
      "",
      "again\n",
    ]);
    expect(Date.parse(until)).toBeGreaterThan(Date.now());
  });

  test("include its screenshots, each through its own conversation only", async () => {
    const { data } = run.artifacts.find((one: any) => one.artifact_type === "SCREENSHOT");
    const image = await follow(`${conversation}/screenshots/${data.artifact_uid}/download`);
    expect([image.headers.get("content-type"), image.text]).toEqual(["image/gif", "GIF89a"]);
    const other = await waitForState(api!, await startRun(api!, script("ask: Well?")), "BLOCKED");
    for (const [who, id, uid] of [
      [api!, other.conversation_id, data.artifact_uid],
      [api!, run.conversation_id, randomUUID()],
      [others!, run.conversation_id, data.artifact_uid],
    ] as const) {
      expect(await who.call("GET", `/agent/conversations/${id}/screenshots/${uid}/download`)).toMatchObject({
        status: 404,
        body: { reason: "screenshot_not_found" },
      });
    }
  });

  test("include screenshots of child runs, through every conversation that shows them", async () => {
    const child = script("write: {path: dot.gif, content: GIF89a}", "screenshot: dot.gif");
    const parent = await succeeded(api!, await startRun(api!, script(spawn(child), "wait: all")));
    const [{ run_id: childId }] = (await api!.get(`/agent/runs?ancestor_run_id=${parent.run_id}`)).runs.filter(
      (one: any) => one.run_id !== parent.run_id,
    );
    const { artifacts, conversation_id: own } = await runOf(api!, childId);
    const path = (id: string) => `/agent/conversations/${id}/screenshots/${artifacts[0].data.artifact_uid}/download`;
    expect(JSON.stringify(await api!.get(`/agent/conversations/${parent.conversation_id}`))).toContain(
      artifacts[0].data.artifact_uid,
    );
    for (const id of [own, parent.conversation_id]) expect((await follow(path(id))).text).toBe("GIF89a");
    expect(await api!.call("GET", path(run.conversation_id))).toMatchObject({ status: 404 });
    expect(await others!.call("GET", path(parent.conversation_id))).toMatchObject({ status: 404 });
  });

  test("include one transcript per run, and no raw transcript on the platform's own harness", async () => {
    expect(await api!.call("GET", `${conversation}/transcript`)).toMatchObject({
      status: 400,
      body: { error_code: "invalid_request", reason: "no_raw_transcript" },
    });
    expect((await api!.call("GET", `/agent/runs/${run.run_id}/transcript`)).status).toBe(302);
  });

  test("can be read with run.view; continuing, interrupting and handing over need run.manage", async () => {
    const { api_key: key } = await api!.post(`/team/${await teamOf(api!)}/keys`, {
      name: "viewer",
      scopes: ["run.view"],
    });
    const viewer = api!.as(key);
    const runPath = `/agent/runs/${run.run_id}`;
    const { data } = run.artifacts.find((one: any) => one.artifact_type === "SCREENSHOT");
    const statusOf = async (method: string, path: string, body?: object) =>
      (await viewer.call(method, path, body ? { body } : {})).status;
    for (const path of [conversation, `${runPath}/conversation`, "/agent/events", `${runPath}/events`])
      expect([path, await statusOf("GET", path)]).toEqual([path, 200]);
    for (const path of [
      `${conversation}/block-snapshot`,
      `${conversation}/screenshots/${data.artifact_uid}/download`,
      `${runPath}/transcript`,
    ])
      expect([path, await statusOf("GET", path)]).toEqual([path, 302]);
    const files = { files: [{ filename: "a", mime_type: "text/plain" }] };
    for (const target of [runPath, conversation]) {
      expect([
        await statusOf("POST", `${target}/attachments/prepare`, files),
        await statusOf("POST", `${target}/followups`, { message: "m" }),
        await statusOf("POST", `${target}/interrupt`),
      ]).toEqual([403, 403, 403]);
    }
    expect(await statusOf("GET", `${runPath}/handoff/attachments`)).toBe(403);
  });

  test("include the workspace of its last execution, with run.manage", async () => {
    const { attachments } = await api!.get(`/agent/runs/${run.run_id}/handoff/attachments`);
    expect(attachments).toEqual([
      {
        attachment_id: expect.any(String),
        filename: expect.stringMatching(/^workspace-\d+\.tar$/),
        download_url: expect.any(String),
        mime_type: "application/x-tar",
      },
    ]);
    expect((await api!.fetch(attachments[0].download_url)).text).toContain("manifest.json");
    expect((await others!.call("GET", `/agent/runs/${run.run_id}/handoff/attachments`)).status).toBe(404);
  });
});

describe("the link of a conversation", () => {
  const shared = (level?: string) => ({
    config: level === undefined ? {} : { session_sharing: { public_access: level } },
  });
  const asking = async (level?: string) =>
    waitForState(
      api!,
      await startRun(
        api!,
        script("shell: echo open; printf GIF89a > dot.gif", "screenshot: dot.gif", "ask: Which one?"),
        shared(level),
      ),
      "BLOCKED",
    );
  const statuses = async (
    by: Client,
    asked: readonly (readonly [string, string, object?])[],
    more: { key?: null } = {},
  ) => {
    const found: number[] = [];
    for (const [method, path, body] of asked)
      found.push((await by.call(method, path, { ...(body && { body }), ...more })).status);
    return found;
  };
  const reads = ({ run_id: run, conversation_id: conversation, artifacts }: any) =>
    [
      ["GET", `/agent/conversations/${conversation}`],
      ["GET", `/agent/runs/${run}/conversation`],
      ["GET", `/agent/conversations/${conversation}/block-snapshot?redirect=false`],
      ["GET", `/agent/conversations/${conversation}/screenshots/${artifacts[0].data.artifact_uid}/download`],
    ] as const;
  const sends = ({ conversation_id: conversation }: any) =>
    [
      [
        "POST",
        `/agent/conversations/${conversation}/attachments/prepare`,
        { files: [{ filename: "a.txt", mime_type: "text/plain" }] },
      ],
      ["POST", `/agent/conversations/${conversation}/followups`, { message: script("say: As you say.") }],
    ] as const;
  const interrupt = ({ conversation_id: conversation }: any) =>
    [["POST", `/agent/conversations/${conversation}/interrupt`]] as const;
  const keyOf = async (client: Client, ...scopes: string[]) =>
    client.as((await client.post(`/team/${await teamOf(client)}/keys`, { name: scopes.join(), scopes })).api_key);
  const rest = ({ run_id: run }: any) =>
    [
      ["GET", `/agent/runs/${run}`],
      ["GET", `/agent/runs/${run}/timeline`],
      ["GET", `/agent/runs/${run}/events`],
      ["GET", `/agent/runs/${run}/transcript`],
      ["POST", `/agent/runs/${run}/cancel`],
      ["POST", `/agent/runs/${run}/followups`, { message: "x" }],
      ["POST", `/agent/runs/${run}/retry`],
    ] as const;
  const none = (count: number, status: number) => Array.from({ length: count }, () => status);

  test("grants no access unless its newest run permits it", async () => {
    const run = await asking();
    expect(await statuses(others!, [...reads(run), ...sends(run), ...interrupt(run), ...rest(run)])).toEqual(
      none(14, 404),
    );
  });

  test("with VIEWER lets signed-in users read it, until a newer run has no link sharing", async () => {
    const run = await asking("VIEWER");
    expect(await statuses(others!, reads(run))).toEqual([200, 200, 200, 302]);
    expect((await others!.get(`/agent/conversations/${run.conversation_id}`)).steps).toEqual(
      (await api!.get(`/agent/conversations/${run.conversation_id}`)).steps,
    );
    expect(await statuses(others!, [...sends(run), ...interrupt(run), ...rest(run)])).toEqual(none(10, 404));
    expect(await statuses(api!, reads(run), { key: null })).toEqual(none(4, 401));
    expect((await others!.get("/agent/runs")).runs.map(({ run_id }: any) => run_id)).not.toContain(run.run_id);
    const team = await teamOf(others!);
    const { uid: agent } = await others!.post("/agent/identities", { name: "reader" });
    const { api_key: key } = await others!.post(`/team/${team}/keys`, { name: "reader", agent_uid: agent });
    expect(await statuses(api!.as(key), reads(run))).toEqual(none(4, 404));
    await succeeded(api!, await startRun(api!, script("say: Closed."), { conversation_id: run.conversation_id }));
    expect(await statuses(others!, reads(run))).toEqual(none(4, 404));
  });

  test("with EDITOR lets them send follow-ups, and nothing else", async () => {
    const run = await asking("EDITOR");
    expect(await statuses(others!, [...reads(run), ...rest(run)])).toEqual([200, 200, 200, 302, ...none(7, 404)]);
    const [mine] = await statuses(api!, interrupt(run));
    expect([mine === 404, await statuses(others!, interrupt(run))]).toEqual([false, [mine]]);
    expect(
      await statuses(await keyOf(others!, "factory.view"), [...reads(run), ...sends(run), ...interrupt(run)]),
    ).toEqual(none(7, 404));
    expect(await statuses(await keyOf(others!, "run.view"), [...reads(run), ...sends(run), ...interrupt(run)])).toEqual(
      [200, 200, 200, 302, ...none(3, 404)],
    );
    expect(await statuses(await keyOf(api!, "run.view"), [...sends(run), ...interrupt(run)])).toEqual(none(3, 403));
    expect(await statuses(others!, sends(run))).toEqual([200, 200]);
    await succeeded(api!, run.run_id);
    const { uid } = (await others!.get("/whoami")).principal;
    expect((await api!.get(`/agent/runs/${run.run_id}/followups`)).followups).toMatchObject([
      { state: "delivered", creator: { uid } },
    ]);
  });
});

describe("the events of a team's runs", () => {
  const LIFE = ["run_created", "run_pending", "run_claimed", "run_in_progress", "run_succeeded"];
  test("are the same in pages and in the stream, in order, from any position, and only for the team", async () => {
    const { events: before } = await api!.get("/agent/events?limit=500");
    const since = before.at(-1)?.sequence ?? 0;
    const stranger = followEvents(
      `${api!.url}/api/v1/agent/events?since=0`,
      { authorization: `Bearer ${others!.key}` },
      ({ event_type: type }) => type === "run_succeeded",
    );
    const runId = await startRun(api!, script("say: hello"));
    const live = followEvents(
      `${api!.url}/api/v1/agent/events?since=${since}`,
      { authorization: `Bearer ${api!.key}` },
      ({ run_id: id, event_type: type }) => id === runId && type === "run_succeeded",
    );
    await succeeded(api!, runId);
    const pages: any[] = [];
    for (let query = `since=${since}`; ;) {
      const page = await api!.get(`/agent/events?limit=2&${query}`);
      pages.push(...page.events);
      if (!page.page_info.has_next_page) break;
      query = `cursor=${page.page_info.next_cursor}`;
    }
    expect(await live).toEqual(pages);
    expect(pages.map(({ run_id: id, event_type: type }) => [id, type])).toEqual(LIFE.map((type) => [runId, type]));
    expect(
      await followEvents(
        `${api!.url}/api/v1/agent/events`,
        { authorization: `Bearer ${api!.key}`, "last-event-id": String(pages[1].sequence) },
        ({ event_type: type }) => type === "run_succeeded",
      ),
    ).toEqual(pages.slice(2));
    await startRun(others!, script("say: theirs"));
    expect((await stranger).filter(({ run_id: id }) => id === runId)).toEqual([]);
    expect(await others!.get(`/agent/events?run_ids=${runId}`)).toEqual({
      events: [],
      page_info: { has_next_page: false },
    });
  });
});

test("the conversation of a queued run exists, without steps, commands or workspace", async () => {
  const { run_id: runId } = await api!.post("/agent/runs", { prompt: "Wait.", config: { worker_host: "nobody" } });
  const { conversation_id: conversation } = await api!.get(`/agent/runs/${runId}`);
  expect(await api!.get(`/agent/conversations/${conversation}`)).toEqual({ conversation_id: conversation, steps: [] });
  expect(await api!.call("GET", `/agent/conversations/${conversation}/block-snapshot`)).toMatchObject({
    status: 404,
    body: { reason: "block_snapshot_not_found" },
  });
  expect(await api!.get(`/agent/runs/${runId}/handoff/attachments`)).toEqual({ attachments: [] });
});
