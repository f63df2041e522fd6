import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  PUBLIC_URL,
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { USER } from "./support/people.ts";
import { aTask, anArtifact, ARTIFACT, CREATED, FACTORY, RUN } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const PATH = `/api/v1/agent/artifacts/${ARTIFACT}`;
const file = {
  artifact: anArtifact(),
  data: {
    download_url: "https://mill.example/blobs/a?sig=x",
    expires_at: "2026-11-20T10:15:00.000Z",
    content_type: "text/plain",
    filename: "out.txt",
  },
  downloadUrl: "https://mill.example/blobs/a?sig=x",
};
const plan = {
  artifact: anArtifact({ artifactType: "PLAN" }),
  data: { content: "# Plan", content_type: "text/markdown", document_uid: "d", notebook_uid: "d" },
  downloadUrl: "",
};
const unauthenticated = upstreamError("unauthenticated", "credential_missing");

describe("an artifact", () => {
  test.each([
    ["FILE", file],
    ["PLAN", plan],
  ])("of type %s returns its data", async (type, answer) => {
    api.respondWith({ getArtifact: answer });
    expect((await api.call("GET", PATH)).body).toEqual({
      artifact_uid: ARTIFACT,
      artifact_type: type,
      created_at: CREATED,
      data: answer.data,
    });
    expect(api.calls[0]).toMatchObject({
      request: { artifactUid: ARTIFACT, anonymous: false },
      caller: { principal: { uid: USER } },
    });
  });
  test("links to the artifacts of its run tree, and to the page of its root run if a task is bound to it", async () => {
    const source = { rootRunUid: RUN, factoryUid: FACTORY, pullRequestUrls: ["https://host.example/pull/1"] };
    const links = async () => (await api.call("GET", PATH)).body.source_links;
    api.respondWith({ getArtifact: { ...file, source }, getTaskByRun: { task: aTask() } });
    expect(await links()).toEqual({
      run_url: expect.stringContaining(`/runs/${RUN}`),
      pull_request_urls: source.pullRequestUrls,
    });
    expect(api.calls[1]).toMatchObject({
      request: { factoryUid: FACTORY, runUid: RUN },
      caller: { principal: { uid: USER } },
    });
    api.respondWith({ getArtifact: { ...file, source }, getTaskByRun: upstreamError("not_found", "task_not_found") });
    expect(await links()).toEqual({ pull_request_urls: source.pullRequestUrls });
    api.respondWith({ getArtifact: { ...file, source: { ...source, factoryUid: "", pullRequestUrls: [] } } });
    expect(await links()).toBeUndefined();
  });
  test("is downloaded by a redirect without caching", async () => {
    api.respondWith({ getArtifact: file });
    const { status, headers, body } = await api.call("GET", `${PATH}/download`);
    expect([
      status,
      headers.get("location"),
      headers.get("cache-control"),
      headers.get("x-content-type-options"),
      body,
    ]).toEqual([302, file.downloadUrl, "private, no-store", "nosniff", ""]);
  });
  test.each(["download", "content"])("returns 404 for the %s of a plan", async (what) => {
    api.respondWith({ getArtifact: plan });
    expect(await api.call("GET", `${PATH}/${what}`)).toMatchObject({
      status: 404,
      body: { error_code: "resource_not_found" },
    });
  });
  describe("in a bucket", () => {
    let bucket: Server;
    let url: string;
    beforeAll(async () => {
      bucket = createServer(({ url: path }, response) =>
        path === "/out.txt"
          ? response
              .writeHead(200, {
                "content-type": "text/plain",
                "content-disposition": "inline",
                "set-cookie": "a=b",
                "content-length": "5",
              })
              .end("hello")
          : response.writeHead(404).end("<Error/>"),
      );
      bucket.listen(0, "127.0.0.1");
      await once(bucket, "listening");
      url = `http://127.0.0.1:${(bucket.address() as AddressInfo).port}`;
    });
    afterAll(() => void bucket.close());

    test("has its content on this server, which never runs as a page", async () => {
      api.respondWith({ getArtifact: { ...file, downloadUrl: `${url}/out.txt` } });
      const { status, headers, body } = await api.call("GET", `${PATH}/content`);
      expect([status, body]).toEqual([200, "hello"]);
      expect(Object.fromEntries(headers)).toMatchObject({
        "content-type": "text/plain",
        "content-disposition": "inline",
        "content-length": "5",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
      });
      expect(headers.has("set-cookie")).toBe(false);
    });
    test.each(["an absent file", "no bucket"])("returns 500 for %s, which may be repeated", async (what) => {
      const downloadUrl = what === "no bucket" ? "http://127.0.0.1:1/out.txt" : `${url}/absent`;
      api.respondWith({ getArtifact: { ...file, downloadUrl } });
      expect(await api.call("GET", `${PATH}/content`)).toMatchObject({
        status: 500,
        body: { reason: "service_unavailable", retryable: true },
      });
    });
  });
  test("in a directory has its content at the signed URL of this server", async () => {
    const downloadUrl = `${PUBLIC_URL}/blobs/a?sig=x`;
    api.respondWith({ getArtifact: { ...file, downloadUrl } });
    const { status, headers } = await api.call("GET", `${PATH}/content`);
    expect([status, headers.get("location")]).toEqual([302, downloadUrl]);
  });
});

describe.each([PATH, `${PATH}/download`, `${PATH}/content`])("GET %s", (path) => {
  test("accepts requests without a key and reports them to the owner", async () => {
    api.respondWith({ getArtifact: file });
    expect((await api.call("GET", path, { key: null })).status).toBeLessThan(400);
    expect(api.calls[0]).toMatchObject({
      request: { anonymous: true },
      caller: { principal: { type: "service", uid: "gateway" } },
    });
  });
  test("returns 401 without a key if the artifact is not public or absent", async () => {
    api.respondWith({ getArtifact: unauthenticated });
    expect(await api.call("GET", path, { key: null })).toMatchObject({
      status: 401,
      body: { error_code: "authentication_required" },
    });
  });
  test("returns 401 for an invalid key, public or not", async () => {
    api.respondWith({});
    expect(await api.call("GET", path, { key: "bad" })).toMatchObject({
      status: 401,
      body: { reason: "key_invalid" },
    });
    expect(api.calls).toEqual([]);
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", path),
    [
      "getArtifact",
      upstreamError("not_found", "artifact_not_found"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
});

describe("PATCH", () => {
  test.each([true, false])("sets public to %s", async (isPublic) => {
    api.respondWith({ updateArtifact: { artifact: anArtifact({ public: isPublic }) } });
    expect((await api.call("PATCH", PATH, { body: { public: isPublic } })).body).toEqual({
      artifact_uid: ARTIFACT,
      public: isPublic,
    });
    expect(api.calls[0]!.request).toMatchObject({ artifactUid: ARTIFACT, public: isPublic });
  });
  test("requires an API key", async () => {
    api.respondWith({});
    expect((await api.call("PATCH", PATH, { key: null, body: { public: true } })).status).toBe(401);
  });
  testUpstreamErrors(
    () => api,
    () => api.call("PATCH", PATH, { body: { public: true } }),
    [
      "updateArtifact",
      upstreamError("not_found", "artifact_not_found"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
});

testRejectedBeforeUpstreams(() => api, 400, [
  ["GET", "/api/v1/agent/artifacts/x"],
  ["GET", "/api/v1/agent/artifacts/x/download"],
  ["GET", "/api/v1/agent/artifacts/x/content"],
  ["PATCH", "/api/v1/agent/artifacts/x", { public: true }],
  ...[{}, { public: null }, { public: "true" }, [], "x"].map((body) => ["PATCH", PATH, body] as const),
]);
