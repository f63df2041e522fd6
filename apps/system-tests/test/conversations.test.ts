import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { Deployment } from "../src/index.ts";
import { connect, type Client } from "./support/client.ts";
import { SLOW_MS, startPlatform } from "./support/deployment.ts";
import { eventsOf, reached, RUN_TIMEOUT_MS, script, startRun, succeeded } from "./support/runs.ts";
import { aTeam } from "./support/world.ts";

let platform: Deployment;
let [api, others]: Client[] = [];

beforeAll(async () => {
  platform = await startPlatform({ workers: 1 });
  api = await connect(platform);
  others = await aTeam(api, "others");
}, SLOW_MS);
afterAll(() => platform?.remove());

/** What the commands of a run have written. */
const outputsOf = async (runId: string): Promise<string[]> =>
  (await eventsOf(api!, runId)).filter(({ kind, payload }) => kind === "tool_end" && payload.name === "run_command").map(({ payload }) => payload.output.output);

describe("files for follow-ups", () => {
  const NOTE = { filename: "note.txt", mime_type: "text/plain" };
  const put = (url: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) => fetch(url, { method: "PUT", body, headers });
  const prepare = async (target: string, count = 1): Promise<any> => api!.post(`${target}/attachments/prepare`, { files: Array.from({ length: count }, () => NOTE) });
  /** Ids of files that are there, one per text. */
  async function files(target: string, ...texts: string[]): Promise<string[]> {
    const { attachments } = await prepare(target, texts.length);
    for (const [at, text] of texts.entries()) {
      const { url, method, headers } = attachments[at].upload_target;
      expect([attachments[at].upload_url, method, (await put(url, text, headers)).status]).toEqual([url, "PUT", 200]);
    }
    return attachments.map((one: any) => one.attachment_id);
  }
  const attached = (...ids: string[]) => ids.map((id) => ({ attachment_id: id }));
  const blocked = async () => reached(api!, await startRun(api!, script("ask: Which file?")), "BLOCKED");

  test("reach a live session under their ids, by the names they are given", async () => {
    const runId = await startRun(api!, script("say: Waiting."), { interactive: true });
    await eventually(async () => expect((await eventsOf(api!, runId)).map(({ kind }) => kind)).toContain("turn_end"), { timeoutMs: RUN_TIMEOUT_MS });
    const [one, two] = await files(`/agent/runs/${runId}`, "first\n", "second\n");
    const message = script(`shell: cat /workspace/.attachments/${two}/note.txt "/workspace/.attachments/${one}/read me.txt"`);
    expect(await api!.post(`/agent/runs/${runId}/followups`, { message, attachments: [{ attachment_id: one, file_name: "read me.txt" }, ...attached(two!)] })).toMatchObject({ outcome: "live_session" });
    await eventually(async () => expect(await outputsOf(runId)).toEqual(["second\nfirst\n"]), { timeoutMs: RUN_TIMEOUT_MS });
    await api!.post(`/agent/runs/${runId}/cancel`);
  });

  test("reach the sandbox of a run that goes on, by its conversation, once per key", async () => {
    const { run_id: runId, conversation_id: conversation } = await blocked();
    const target = `/agent/conversations/${conversation}`;
    expect(await prepare(target)).toMatchObject({ run_id: runId });
    const [id] = await files(target, "the file\n");
    const send = () => api!.post(`${target}/followups`, { message: script(`shell: cat .attachments/${id}/note.txt`), attachments: attached(id!) }, { headers: { "idempotency-key": runId } });
    const [first, again] = [await send(), await send()];
    expect([first, again]).toEqual([{ outcome: "handoff_execution", followup_id: expect.any(String), run_id: runId }, first]);
    await succeeded(api!, runId);
    expect(await outputsOf(runId)).toEqual(["the file\n"]);
  });

  test("are unknown_attachment, and send nothing, unless they were prepared for the newest run and uploaded", async () => {
    const old = await blocked();
    const [ofOld] = await files(`/agent/runs/${old.run_id}`, "old");
    const newer = await reached(api!, await startRun(api!, script("ask: And?"), { conversation_id: old.conversation_id }), "BLOCKED");
    const target = `/agent/conversations/${old.conversation_id}`;
    const { attachments: [unsent] } = await prepare(target);
    const before = await eventsOf(api!, newer.run_id);
    for (const id of [ofOld!, unsent.attachment_id, randomUUID(), "x"]) {
      const answer = await api!.call("POST", `${target}/followups`, { body: { message: "m", attachments: attached(id) } });
      expect([answer.status, answer.body.error_code, answer.body.retryable]).toEqual([422, "unknown_attachment", false]);
    }
    expect(await eventsOf(api!, newer.run_id)).toEqual(before);
  });

  test("are bounded: 25 of them, 25 MB each, and a link that has been changed takes nothing", async () => {
    const { run_id: runId } = await blocked();
    const { attachments: [one] } = await prepare(`/agent/runs/${runId}`);
    expect((await api!.call("POST", `/agent/runs/${runId}/followups`, { body: { attachments: attached(...Array.from({ length: 26 }, randomUUID)) } })).status).toBe(400);
    expect((await put(one.upload_url, new Uint8Array(25_000_001))).status).toBe(413);
    for (const change of [(url: string) => url.replace(/max=\d+/, "max=99000000"), (url: string) => url.replace(/uploads\/[^?]+/, `uploads/${randomUUID()}`), (url: string) => url.replace("m=PUT", "m=GET")]) {
      expect((await put(change(one.upload_url), "x")).status).toBe(403);
    }
    expect((await fetch(one.upload_url)).status).toBe(403);
  });

  test("are another team's to prepare, send or name no more than a run that nobody has", async () => {
    const { run_id: runId, conversation_id: conversation } = await blocked();
    const [id] = await files(`/agent/runs/${runId}`, "ours");
    for (const target of [`/agent/runs/${runId}`, `/agent/conversations/${conversation}`]) {
      expect((await others!.call("POST", `${target}/attachments/prepare`, { body: { files: [NOTE] } })).status).toBe(404);
      expect((await others!.call("POST", `${target}/followups`, { body: { message: "m", attachments: attached(id!) } })).status).toBe(404);
    }
    const { run_id: theirs } = await others!.post("/agent/runs", { prompt: script("ask: Well?") });
    await reached(others!, theirs, "BLOCKED");
    const named = async (one: string) => (({ status, body: { error_code: code, detail } }) => [status, code, detail])(await others!.call("POST", `/agent/runs/${theirs}/followups`, { body: { message: "m", attachments: attached(one) } }));
    expect(await named(id!)).toEqual(await named(randomUUID()));
  });
});
