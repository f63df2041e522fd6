import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { RUN } from "./support/people.ts";
import { at, CONVERSATION, CREATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const PATH = `/api/v1/agent/conversations/${CONVERSATION}`;
const SHOT = "0190c1a2-0000-7000-8000-0000000000aa";
const LINK = "https://mill.example/blobs/x?sig=s";
const get = (view: string) => api.call("GET", `${PATH}/${view}`);

describe.each([
  ["transcript", "getTranscriptUrl", { conversationUid: CONVERSATION, runUid: "" }, {}],
  [`screenshots/${SHOT}/download`, "getScreenshotUrl", { conversationUid: CONVERSATION, screenshotUid: SHOT }, {}],
  ["block-snapshot", "getBlockSnapshotUrl", { conversationUid: CONVERSATION }, { expiresAt: at(CREATED) }],
  [
    "block-snapshot?redirect=true",
    "getBlockSnapshotUrl",
    { conversationUid: CONVERSATION },
    { expiresAt: at(CREATED) },
  ],
])("%s", (view, method, asked, more) => {
  test("redirects to a signed URL without caching", async () => {
    api.respondWith({ [method]: { url: LINK, ...more } });
    const { status, headers, body } = await get(view);
    expect([status, headers.get("location"), headers.get("cache-control"), body]).toEqual([
      302,
      LINK,
      "private, no-store",
      "",
    ]);
    expect(api.calls[0]!.request).toMatchObject(asked);
  });
});

test("returns the link of the block snapshot as JSON on request", async () => {
  api.respondWith({ getBlockSnapshotUrl: { url: LINK, expiresAt: at(CREATED) } });
  expect(await get("block-snapshot?redirect=false")).toMatchObject({
    status: 200,
    body: { download_url: LINK, expires_at: CREATED },
  });
});

describe("refusals", () => {
  const [absent] = [upstreamError("not_found", "conversation_not_found")];
  testUpstreamErrors(
    () => api,
    () => get("transcript"),
    [
      "getTranscriptUrl",
      absent,
      upstreamError("invalid_argument", "no_raw_transcript"),
      upstreamError("not_found", "transcript_not_found"),
      upstreamError("unavailable", "blob_store_unavailable"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => get(`screenshots/${SHOT}/download`),
    ["getScreenshotUrl", upstreamError("not_found", "screenshot_not_found")],
  );
  testUpstreamErrors(
    () => api,
    () => get("block-snapshot"),
    ["getBlockSnapshotUrl", absent, upstreamError("not_found", "block_snapshot_not_found")],
  );
  testRejectedBeforeUpstreams(
    () => api,
    400,
    ["redirect=no", "redirect=1", "redirect="].map((query) => ["GET", `${PATH}/block-snapshot?${query}`] as const),
  );
  testRejectedBeforeUpstreams(
    () => api,
    404,
    [
      "x/transcript",
      "x/block-snapshot",
      `x/screenshots/${SHOT}/download`,
      `${CONVERSATION}/screenshots/x/download`,
    ].map((path) => ["GET", `/api/v1/agent/conversations/${path}`] as const),
  );
});

describe("handoff attachments", () => {
  const path = `/api/v1/agent/runs/${RUN}/handoff/attachments`;
  test("are the files with their links", async () => {
    api.respondWith({
      listHandoffFiles: {
        files: [{ uid: SHOT, fileName: "workspace-7.tar", mimeType: "application/x-tar", downloadUrl: LINK }],
      },
    });
    expect((await api.call("GET", path)).body).toEqual({
      attachments: [
        { attachment_id: SHOT, filename: "workspace-7.tar", download_url: LINK, mime_type: "application/x-tar" },
      ],
    });
    expect(api.calls[0]!.request).toMatchObject({ runUid: RUN });
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", path),
    [
      "listHandoffFiles",
      upstreamError("not_found", "run_not_found"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
  testRejectedBeforeUpstreams(() => api, 404, [["GET", "/api/v1/agent/runs/x/handoff/attachments"]]);
});
