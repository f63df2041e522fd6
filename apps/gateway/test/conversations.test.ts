import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { neverReachNeighbours, openDoor, refusal, refusalsBecomeProblems, type Door } from "./support/door.ts";
import { RUN } from "./support/people.ts";
import { at, CONVERSATION, CREATED } from "./support/records.ts";

let door: Door;
beforeAll(async () => void (door = await openDoor()));
afterAll(() => door.close());

const PATH = `/api/v1/agent/conversations/${CONVERSATION}`;
const SHOT = "0190c1a2-0000-7000-8000-0000000000aa";
const LINK = "https://mill.example/blobs/x?sig=s";
const get = (view: string) => door.call("GET", `${PATH}/${view}`);

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
  test("is a redirect that nobody keeps", async () => {
    door.answer({ [method]: { url: LINK, ...more } });
    const { status, headers, body } = await get(view);
    expect([status, headers.get("location"), headers.get("cache-control"), body]).toEqual([
      302,
      LINK,
      "private, no-store",
      "",
    ]);
    expect(door.calls[0]!.request).toMatchObject(asked);
  });
});

test("the block snapshot's link comes as JSON when it is asked for so", async () => {
  door.answer({ getBlockSnapshotUrl: { url: LINK, expiresAt: at(CREATED) } });
  expect(await get("block-snapshot?redirect=false")).toMatchObject({
    status: 200,
    body: { download_url: LINK, expires_at: CREATED },
  });
});

describe("refusals", () => {
  const [absent] = [refusal("not_found", "conversation_not_found")];
  refusalsBecomeProblems(
    () => door,
    () => get("transcript"),
    [
      "getTranscriptUrl",
      absent,
      refusal("invalid_argument", "no_raw_transcript"),
      refusal("not_found", "transcript_not_found"),
      refusal("unavailable", "blob_store_unavailable"),
    ],
  );
  refusalsBecomeProblems(
    () => door,
    () => get(`screenshots/${SHOT}/download`),
    ["getScreenshotUrl", refusal("not_found", "screenshot_not_found")],
  );
  refusalsBecomeProblems(
    () => door,
    () => get("block-snapshot"),
    ["getBlockSnapshotUrl", absent, refusal("not_found", "block_snapshot_not_found")],
  );
  neverReachNeighbours(
    () => door,
    400,
    ["redirect=no", "redirect=1", "redirect="].map((query) => ["GET", `${PATH}/block-snapshot?${query}`] as const),
  );
  neverReachNeighbours(
    () => door,
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
    door.answer({
      listHandoffFiles: {
        files: [{ uid: SHOT, fileName: "workspace-7.tar", mimeType: "application/x-tar", downloadUrl: LINK }],
      },
    });
    expect((await door.call("GET", path)).body).toEqual({
      attachments: [
        { attachment_id: SHOT, filename: "workspace-7.tar", download_url: LINK, mime_type: "application/x-tar" },
      ],
    });
    expect(door.calls[0]!.request).toMatchObject({ runUid: RUN });
  });
  refusalsBecomeProblems(
    () => door,
    () => door.call("GET", path),
    ["listHandoffFiles", refusal("not_found", "run_not_found"), refusal("permission_denied", "not_authorized")],
  );
  neverReachNeighbours(() => door, 404, [["GET", "/api/v1/agent/runs/x/handoff/attachments"]]);
});
