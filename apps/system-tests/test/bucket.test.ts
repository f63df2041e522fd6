import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { eventually, s3Server, type S3Server } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { onDeployments, startPlatform } from "./support/deployment.ts";
import { waitForState, script, shellOutputs, startRun, succeeded } from "./support/runs.ts";

/** Larger than content that is sent inline (256 KiB). */
const LARGE = 300_000;

let s3: S3Server;
beforeAll(async () => void (s3 = await s3Server()));
afterAll(() => s3?.close());

onDeployments(["standalone", "processes"], (deployment) => {
  let platform: Deployment;
  let api: Client;
  let run: any;
  beforeAll(async () => {
    platform = await startPlatform(
      { env: { MILLWRIGHT_BLOB_URL: s3.blobUrl, MILLWRIGHT_PARKED_WORKSPACES: "0", ...s3.env } },
      deployment,
    );
    api = await connect(platform);
    const steps = [
      "write: {path: a.txt, content: hello}",
      "artifact: {file: a.txt, public: true}",
      `shell: head -c ${LARGE} /dev/zero | tr '\\0' x > big.bin`,
      "artifact: {file: big.bin, title: Big}",
    ];
    const attachments = [
      { file_name: "note.txt", mime_type: "text/plain", data: Buffer.from("a note").toString("base64") },
    ];
    const id = await startRun(api, script(...steps, "shell: cat .attachments/*/note.txt", "ask: Go on?"), {
      attachments,
    });
    run = await waitForState(api, id, "BLOCKED", "FAILED", "ERROR", "SUCCEEDED");
  });
  afterAll(() => platform?.remove());

  const uidOf = (name: string): string =>
    run.artifacts.find(({ data }: any) => data.filename === name).data.artifact_uid;
  const asked = (what: string): string[] =>
    s3.requests.filter((line) => line.startsWith(what) && line.includes(run.run_id));

  test("an artifact's link points to the bucket, needs no authorization, and has a Content-Disposition", async () => {
    const { status, headers } = await api.call("GET", `/agent/artifacts/${uidOf("a.txt")}/download`, { key: null });
    const link = headers.get("location")!;
    expect([status, link.startsWith(`${s3.bucketUrl}/artifacts/${run.run_id}/`)]).toEqual([302, true]);
    const file = await fetch(link);
    expect([file.status, file.headers.get("content-disposition"), await file.text()]).toEqual([
      200,
      `inline; filename="a.txt"; filename*=UTF-8''a.txt`,
      "hello",
    ]);
    expect((await fetch(link.split("?")[0]!)).status).toBe(403);
  });

  test("an artifact's content is also on this server, where browsers can show it", async () => {
    const { status, headers, body } = await api.call("GET", `/agent/artifacts/${uidOf("a.txt")}/content`);
    expect([status, headers.get("content-type"), body]).toEqual([200, "text/plain", "hello"]);
    const page = await api.fetch(`${platform.url}/runs/${run.run_id}/artifacts/${uidOf("a.txt")}`, {
      headers: { authorization: `Bearer ${api.key}` },
    });
    expect(page.text).toBe("hello");
  });

  test("the worker uploads a large artifact directly; it is private until it is made public", async () => {
    const { data } = await api.get(`/agent/artifacts/${uidOf("big.bin")}`);
    const file = await fetch(data.download_url);
    expect([file.headers.get("content-disposition"), (await file.text()).length]).toEqual([
      `attachment; filename="big.bin"; filename*=UTF-8''big.bin`,
      LARGE,
    ]);
    expect((await api.call("GET", `/agent/artifacts/${uidOf("big.bin")}`, { key: null })).status).toBe(401);
    await api.patch(`/agent/artifacts/${uidOf("big.bin")}`, { public: true });
    expect((await api.call("GET", `/agent/artifacts/${uidOf("big.bin")}`, { key: null })).status).toBe(200);
  });

  test("an attachment of a request is stored in the bucket, and the worker downloads it from there", async () => {
    expect(s3.requests).toEqual(
      expect.arrayContaining([
        expect.stringMatching("^PUT /millwright/attachments/"),
        expect.stringMatching("^GET /millwright/attachments/"),
      ]),
    );
    expect((await shellOutputs(api, run.run_id)).at(-1)).toBe("a note");
  });

  test("a workspace is stored in the bucket, and a follow-up continues in it", async () => {
    expect(asked("PUT /millwright/snapshots/")).not.toEqual([]);
    await api.post(`/agent/runs/${run.run_id}/followups`, { message: script("shell: cat a.txt; wc -c < big.bin") });
    await succeeded(api, run.run_id);
    expect((await shellOutputs(api, run.run_id)).at(-1)).toBe(`hello${LARGE}\n`);
    expect(asked("GET /millwright/snapshots/")).not.toEqual([]);
  });

  test("a transcript is written to the bucket and read from it", async () => {
    await eventually(() => expect(asked("PUT /millwright/transcripts/")).not.toEqual([]));
    const { headers } = await api.call("GET", `/agent/runs/${run.run_id}/transcript`);
    const transcript = await fetch(headers.get("location")!);
    expect(headers.get("location")).toContain(s3.bucketUrl);
    expect(await transcript.text()).toContain("Go on?");
  });

  test("no blob is on the platform's disk, and the platform serves none", async () => {
    for (const dir of ["blobs", "data/blobs"]) expect(existsSync(platform.path(dir, "artifacts"))).toBe(false);
    expect((await api.fetch(`${platform.url}/blobs/artifacts/${run.run_id}/x`)).status).toBe(404);
  });
});
