import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import { serviceCaller, type Caller } from "@millwright/caller";
import { newUid, type TeamUid } from "@millwright/ids";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";

let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
let execution: ActiveExecution;
let runUid: string;

beforeEach(async () => {
  p = await catalogPlatform();
  caller = aCaller();
  runUid = (await p.run(caller)).uid;
  worker = await p.worker();
  execution = await startExecution(p, worker);
});
afterEach(() => p.close());

const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const lease = () => ({ executionId: BigInt(execution.ref.executionId), attempt: execution.ref.attempt });
const create = (over: Record<string, unknown> = {}) =>
  p.workers.createArtifact(
    {
      ...lease(),
      clientArtifactId: "call-1",
      artifactType: "FILE",
      data: { filepath: "out/a.txt", mime_type: "text/plain" },
      content: bytes("hello"),
      ...over,
    },
    bearer(worker),
  );
const shown = async () => (await p.runs.listRuns({}, p.as(caller))).runs[0]!.artifacts;
const read = (artifactUid: string, who = caller, anonymous = false) =>
  p.artifacts.getArtifact({ artifactUid, anonymous }, p.as(who));
const anonymous = () => serviceCaller("gateway", newUid());

test("stores small content with the report, shows it at once and appends an event to the run", async () => {
  const { artifactUid, uploadUrl } = await create();
  expect(uploadUrl).toBe("");
  expect((await shown())[0]).toMatchObject({
    artifactType: "FILE",
    data: {
      artifact_uid: artifactUid,
      filename: "a.txt",
      filepath: "out/a.txt",
      mime_type: "text/plain",
      size_bytes: 5,
    },
  });
  const { data, downloadUrl } = await read(artifactUid);
  expect(data).toMatchObject({
    download_url: downloadUrl,
    content_type: "text/plain",
    filename: "a.txt",
    size_bytes: 5,
  });
  expect(await p.follow("GET", downloadUrl)).toBe("hello");
  expect((await p.events(runUid)).at(-1)).toMatchObject({
    kind: "artifact_created",
    payload: { artifact_uid: artifactUid, artifact_type: "FILE", title: "a.txt" },
  });
});

test("returns the same artifact and appends no second event for a repeated report", async () => {
  const answers = await Promise.all([create(), create(), create()]);
  expect(new Set(answers.map(({ artifactUid }) => artifactUid)).size).toBe(1);
  expect(await shown()).toHaveLength(1);
  expect((await p.kinds(runUid)).filter((kind) => kind === "artifact_created")).toHaveLength(1);
});

describe("an upload", () => {
  const content = bytes("a larger file");
  const announced = {
    content: undefined,
    sizeBytes: BigInt(content.length),
    sha256: createHash("sha256").update(content).digest("hex"),
  };

  test("Artifact upload cut: it is invisible until its bytes have been verified, and the upload can be repeated", async () => {
    const { artifactUid, uploadUrl } = await create(announced);
    expect(await shown()).toEqual([]);
    await expect(read(artifactUid)).rejects.toEqual(domainError({ reason: "artifact_not_found" }));
    await expect(p.workers.commitArtifact({ ...lease(), artifactUid }, bearer(worker))).rejects.toEqual(
      domainError({ reason: "artifact_not_uploaded" }),
    );
    await p.follow("PUT", uploadUrl, content);
    await p.workers.commitArtifact({ ...lease(), artifactUid }, bearer(worker));
    await p.workers.commitArtifact({ ...lease(), artifactUid }, bearer(worker));
    expect(await p.follow("GET", (await read(artifactUid)).downloadUrl)).toBe("a larger file");
    expect((await p.kinds(runUid)).filter((kind) => kind === "artifact_created")).toHaveLength(1);
    expect((await create(announced)).uploadUrl).toBe("");
  });

  test("is refused by the link and by the commit if its bytes differ from the announced ones, and can be repeated", async () => {
    const { artifactUid, uploadUrl } = await create(announced);
    await expect(p.follow("PUT", uploadUrl, bytes("a l@rger file"))).rejects.toEqual(
      domainError({ reason: "blob_content_mismatch" }),
    );
    await p.blobs.put(await keyOf(artifactUid), bytes("a l@rger file"), { contentType: "text/plain" });
    await expect(p.workers.commitArtifact({ ...lease(), artifactUid }, bearer(worker))).rejects.toEqual(
      domainError({ reason: "artifact_content_mismatch" }),
    );
    expect(await shown()).toEqual([]);
    const again = await create(announced);
    expect(again.artifactUid).toBe(artifactUid);
    await p.follow("PUT", again.uploadUrl, content);
    await p.workers.commitArtifact({ ...lease(), artifactUid }, bearer(worker));
    expect(await shown()).toHaveLength(1);
  });

  test("cannot change committed bytes by an earlier announcement of other bytes", async () => {
    const late = bytes("the late one");
    const before = await create({
      ...announced,
      sizeBytes: BigInt(late.length),
      sha256: createHash("sha256").update(late).digest("hex"),
    });
    const { artifactUid, uploadUrl } = await create(announced);
    expect(artifactUid).toBe(before.artifactUid);
    await p.follow("PUT", uploadUrl, content);
    await p.workers.commitArtifact({ ...lease(), artifactUid }, bearer(worker));
    await p.follow("PUT", before.uploadUrl, late);
    await p.follow("PUT", uploadUrl, content);
    expect(await p.follow("GET", (await read(artifactUid)).downloadUrl)).toBe("a larger file");
  });
});

const keyOf = async (artifactUid: string): Promise<string> =>
  (await p.database.sql.query<{ key: string }>("SELECT blob_key AS key FROM artifacts WHERE uid = $1", [artifactUid]))
    .rows[0]!.key;

test("of a lost attempt is superseded by the next attempt's announcement of other bytes", async () => {
  const first = await create({ content: undefined, sizeBytes: 3n, sha256: "a".repeat(64) });
  await p.expire(execution.ref.executionId);
  await p.reaperIsAwake();
  await p.life.reapOnce();
  execution = await startExecution(p, worker);
  const second = await create({ content: bytes("other") });
  expect(second).toMatchObject({ artifactUid: first.artifactUid, uploadUrl: "" });
  expect(await p.follow("GET", (await read(second.artifactUid)).downloadUrl)).toBe("other");
});

test("updates a plan that is reported again under its title; another title creates another plan", async () => {
  const plan = (clientArtifactId: string, title: string, text: string) =>
    create({ clientArtifactId, artifactType: "PLAN", data: { title }, content: bytes(text) });
  const { artifactUid } = await plan("call-1", "Plan", "# One");
  for (const again of ["call-2", "call-2"]) expect(await plan(again, "Plan", "# Two")).toMatchObject({ artifactUid });
  expect(await plan("call-1", "Plan", "# One")).toMatchObject({ artifactUid }); // a late retry of the first call
  const { artifactUid: otherUid } = await plan("call-3", "Other", "# Other");
  expect((await shown()).map(({ uid }) => uid)).toEqual([artifactUid, otherUid]);
  expect((await read(artifactUid)).data).toMatchObject({ content: "# Two", title: "Plan" });
  expect((await p.kinds(runUid)).filter((kind) => kind.startsWith("artifact_"))).toEqual([
    "artifact_created",
    "artifact_updated",
    "artifact_created",
  ]);
});

test("creates one artifact for plans that are reported concurrently under one title", async () => {
  const made = await Promise.all(
    ["a", "b", "c"].map((id) =>
      create({ clientArtifactId: id, artifactType: "PLAN", data: { title: "Plan" }, content: bytes(id) }),
    ),
  );
  expect(new Set(made.map(({ artifactUid }) => artifactUid)).size).toBe(1);
  expect(await shown()).toHaveLength(1);
});

test("returns a plan with its text and without a download", async () => {
  const { artifactUid } = await create({ artifactType: "PLAN", data: { title: "Plan" }, content: bytes("# Steps") });
  expect(await read(artifactUid)).toMatchObject({
    downloadUrl: "",
    data: { content: "# Steps", content_type: "text/markdown", document_uid: artifactUid, title: "Plan" },
  });
});

test("shows a reference in its run, and does not return it by its own id", async () => {
  const { artifactUid } = await create({
    artifactType: "EXTERNAL_REFERENCE",
    data: { reference_type: "ticket", url: "https://E.com/1" },
    content: undefined,
  });
  expect((await shown())[0]?.data).toEqual({ reference_type: "ticket", url: "https://e.com/1" });
  await expect(read(artifactUid)).rejects.toEqual(domainError({ reason: "artifact_not_found" }));
});

describe("an attempt that lost its lease", () => {
  beforeEach(async () => {
    await p.expire(execution.ref.executionId);
    await p.reaperIsAwake();
    await p.life.reapOnce();
  });
  test.each([
    ["an artifact", () => create()],
    ["cost", () => p.workers.reserveCost({ ...lease(), modelId: "scripted" }, bearer(worker))],
    ["usage", () => p.workers.reportUsage({ ...lease(), callId: "c", modelId: "scripted", usage: {} }, bearer(worker))],
    ["a snapshot", () => p.workers.putSnapshot({ ...lease(), sizeBytes: 1n, sha256: "a".repeat(64) }, bearer(worker))],
    [
      "a transcript",
      () => p.workers.putTranscript({ ...lease(), sizeBytes: 1n, sha256: "a".repeat(64) }, bearer(worker)),
    ],
    [
      "a pull request",
      () =>
        p.workers.openPullRequest(
          { ...lease(), owner: "o", repo: "r", headBranch: "b", headSha: "c", title: "t" },
          bearer(worker),
        ),
    ],
  ])("cannot store %s", async (_, act) => {
    await expect(act()).rejects.toEqual(domainError({ reason: "lease_lost" }));
    expect(await shown()).toEqual([]);
  });
});

test("another session cannot write under the lease", async () => {
  const otherWorker = await p.worker();
  const report = { ...lease(), clientArtifactId: "x", artifactType: "PLAN", data: {}, content: bytes("x") };
  await expect(p.workers.createArtifact(report, bearer(otherWorker))).rejects.toEqual(
    domainError({ reason: "lease_lost" }),
  );
});

describe("access to an artifact", () => {
  const stranger = () => aCaller();
  test("a private artifact is readable by its team, unknown to other teams, and asks anonymous readers for a key", async () => {
    const { artifactUid } = await create();
    const refusals = await Promise.allSettled([
      read(artifactUid, stranger()),
      read(newUid(), stranger()),
      read("nonsense", stranger()),
    ]);
    for (const refusal of refusals)
      expect(refusal).toMatchObject({ reason: domainError({ kind: "not_found", reason: "artifact_not_found" }) });
    for (const uid of [artifactUid, newUid()])
      await expect(read(uid, anonymous(), true)).rejects.toEqual(domainError({ kind: "unauthenticated" }));
  });

  test("a public artifact is readable by everyone; anonymous readers do not get its path", async () => {
    const { artifactUid } = await create();
    await p.artifacts.updateArtifact({ artifactUid, public: true }, p.as(caller));
    expect((await read(artifactUid, stranger())).data).toMatchObject({ filename: "a.txt" });
    const { data, source } = await read(artifactUid, anonymous(), true);
    expect(source).toBeUndefined();
    expect(data).toMatchObject({ filename: "a.txt" });
    expect(data).not.toHaveProperty("filepath");
  });

  test("its origin is readable by those who can read its run, whether it is public or not", async () => {
    const { artifactUid } = await create();
    await p.artifacts.updateArtifact({ artifactUid, public: true }, p.as(caller));
    expect((await read(artifactUid)).source).toMatchObject({ rootRunUid: runUid, factoryUid: "", pullRequestUrls: [] });
    expect((await read(artifactUid, stranger())).source).toBeUndefined();
  });

  test("publishing it requires artifact.manage in its team", async () => {
    const { artifactUid } = await create();
    const viewer: Caller = { ...aCaller(), teams: [{ teamUid: caller.teams[0]!.teamUid, verbs: ["run.view"] }] };
    await expect(p.artifacts.updateArtifact({ artifactUid, public: true }, p.as(viewer))).rejects.toEqual(
      domainError({ reason: "not_authorized" }),
    );
    await expect(p.artifacts.updateArtifact({ artifactUid, public: true }, p.as(stranger()))).rejects.toEqual(
      domainError({ reason: "artifact_not_found" }),
    );
    await expect(read(artifactUid, anonymous(), true)).rejects.toEqual(domainError({ kind: "unauthenticated" }));
  });
});

describe("usage", () => {
  const report = (callId: string, usage: Record<string, bigint>, modelId = "scripted") =>
    p.workers.reportUsage({ ...lease(), callId, modelId, usage }, bearer(worker));
  const usageOf = async () => (await p.runs.listRuns({}, p.as(caller))).runs[0]!.requestUsage;

  test("is absent until a call is metered; the scripted model reports zeros; a repeated call counts once", async () => {
    expect(await usageOf()).toBeUndefined();
    await report("call-1", { inputTokens: 0n, outputTokens: 0n });
    await report("call-1", { inputTokens: 5n, outputTokens: 5n });
    expect(await usageOf()).toMatchObject({ inference_cost_usd: 0, total_tokens: 0 });
    expect((await p.kinds(runUid)).filter((kind) => kind === "usage_recorded")).toHaveLength(1);
  });

  test("is priced when it is recorded, and a later price does not change it", async () => {
    const price = (version: number, micros: number) =>
      p.database.sql.query(
        "INSERT INTO model_prices (model_id, version, input_per_million_micros, output_per_million_micros) VALUES ('m', $1, $2, 0)",
        [version, micros],
      );
    await price(1, 3_000_000);
    await report("call-1", { inputTokens: 1000n, outputTokens: 1n }, "m");
    await price(2, 9_000_000);
    expect(await usageOf()).toMatchObject({ inference_cost_usd: 0.003, total_tokens: 1001 });
    await report("call-2", { inputTokens: 1000n, outputTokens: 0n }, "m");
    expect(await usageOf()).toMatchObject({ inference_cost_usd: 0.012, total_tokens: 2001 });
  });

  test("has the cost that the provider reports, with or without a price", async () => {
    await p.database.sql.query(
      "INSERT INTO model_prices (model_id, version, input_per_million_micros, output_per_million_micros) VALUES ('m', 1, 3000000, 0)",
    );
    await report("call-1", { inputTokens: 1000n, outputTokens: 1n, costMicros: 42n }, "m");
    await report("call-2", { inputTokens: 1000n, outputTokens: 1n, costMicros: 0n }, "unheard-of");
    expect(await usageOf()).toMatchObject({ inference_cost_usd: 0.000042, total_tokens: 2002 });
    expect(
      (await p.database.sql.query("SELECT cost_micros, price_version FROM usage_rows ORDER BY call_id")).rows,
    ).toEqual([
      { cost_micros: 42, price_version: null },
      { cost_micros: 0, price_version: null },
    ]);
    for (const costMicros of [-1n, 1_000_000_000_001n])
      await expect(report("call-3", { inputTokens: 1n, outputTokens: 1n, costMicros }, "m")).rejects.toEqual(
        domainError({ reason: "usage_invalid" }),
      );
    await report("call-3", { inputTokens: 1000n, outputTokens: 1n }, "m");
    expect(await usageOf()).toMatchObject({ inference_cost_usd: 0.003042 });
  });

  test("has tokens and no cost for a model without a known price", async () => {
    await report("call-1", { inputTokens: 10n, outputTokens: 1n }, "unheard-of");
    const usage = await usageOf();
    expect(usage).toMatchObject({ total_tokens: 11 });
    expect(usage).not.toHaveProperty("inference_cost_usd");
  });
});

test("stores one snapshot per attempt and content, with the announced size, up to a limit", async () => {
  const announced = (text: string) => ({
    ...lease(),
    sizeBytes: BigInt(text.length),
    sha256: createHash("sha256").update(text).digest("hex"),
  });
  const put = (request: object) => p.workers.putSnapshot({ ...announced("tar"), ...request }, bearer(worker));
  const [first, again, different] = [await put({}), await put({}), await put(announced("other"))];
  expect([again.snapshotKey, different.snapshotKey === first.snapshotKey]).toEqual([first.snapshotKey, false]);
  await p.follow("PUT", first.uploadUrl, bytes("tar"));
  await expect(p.follow("PUT", first.uploadUrl, bytes("rat"))).rejects.toEqual(
    domainError({ reason: "blob_content_mismatch" }),
  );
  await expect(put({ sizeBytes: 1n << 40n })).rejects.toEqual(domainError({ reason: "snapshot_too_large" }));
  await expect(put({ sha256: "../.." })).rejects.toEqual(domainError({ reason: "snapshot_invalid" }));
});

test("stores one transcript of a third-party harness per attempt and content, up to a limit", async () => {
  const announced = (text: string) => ({
    ...lease(),
    sizeBytes: BigInt(text.length),
    sha256: createHash("sha256").update(text).digest("hex"),
  });
  const put = (request: object) => p.workers.putTranscript({ ...announced("lines"), ...request }, bearer(worker));
  const [first, again, different] = (await Promise.all([put({}), put({}), put(announced("other"))])).map(
    ({ uploadUrl }) => new URL(uploadUrl).pathname,
  );
  expect([again, different === first]).toEqual([first, false]);
  await p.follow("PUT", (await put({})).uploadUrl, bytes("lines"));
  await expect(put({ sizeBytes: 1n << 40n })).rejects.toEqual(domainError({ reason: "transcript_too_large" }));
  await expect(put({ sha256: "../.." })).rejects.toEqual(domainError({ reason: "transcript_invalid" }));
});

test("lists only the team's own artifacts", async () => {
  await create();
  const otherTeam = aCaller({ teams: [{ teamUid: newUid<TeamUid>(), verbs: ["run.view"] }] });
  expect((await p.runs.listRuns({}, p.as(otherTeam))).runs).toEqual([]);
});
