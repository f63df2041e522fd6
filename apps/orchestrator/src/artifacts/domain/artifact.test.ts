import { describe, expect, test } from "@jest/globals";
import type { ArtifactUid, RunUid } from "@millwright/ids";
import { artifactDetailData, isRetrievable } from "./artifact-views.ts";
import { artifactItemData } from "../../runs/domain/run-artifact.ts";
import { ARTIFACT_LIMITS, checkNewArtifact, type NewArtifact } from "./artifact.ts";
import type { Artifact } from "../../runs/domain/run-artifact.ts";
import { canonicalUrl } from "../../catalog/domain/canonical-url.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const report = (over: Partial<NewArtifact>): NewArtifact => ({
  type: "FILE",
  data: { filepath: "out.txt" },
  content: bytes("x"),
  sizeBytes: 0,
  sha256: "",
  ...over,
});
const upload = (over: Partial<NewArtifact>): NewArtifact => {
  const { content: _, ...rest } = report({ sizeBytes: 5, sha256: "a".repeat(64), ...over });
  return rest;
};

describe("accepted", () => {
  test("stores the text of a plan", () =>
    expect(
      checkNewArtifact(report({ type: "PLAN", data: { title: "T", other: 1 }, content: bytes("# ü") })),
    ).toMatchObject({ bytes: "text", text: "# ü", data: { title: "T" } }));
  test("names a file by the last part of its path and ignores unknown members", () =>
    expect(
      checkNewArtifact(report({ data: { filepath: "./a/b.txt", mime_type: "text/plain; charset=utf-8", evil: true } }))
        .data,
    ).toEqual({
      filename: "b.txt",
      filepath: "a/b.txt",
      mime_type: "text/plain; charset=utf-8",
    }));
  test("announces content that exceeds the inline limit", () =>
    expect(checkNewArtifact(upload({}))).toMatchObject({
      bytes: "upload",
      sizeBytes: 5,
      sha256: "a".repeat(64),
      contentType: "application/octet-stream",
    }));
  test("stores the canonical URL of a reference", () =>
    expect(
      checkNewArtifact(
        report({
          type: "EXTERNAL_REFERENCE",
          data: { reference_type: "ticket", url: "HTTPS://Example.com:443/a?b#c" },
        }),
      ),
    ).toMatchObject({
      bytes: "none",
      data: { reference_type: "ticket", url: "https://example.com/a?b" },
    }));
});

describe("refused", () => {
  test.each<[string, NewArtifact, string]>([
    ["a pull request", report({ type: "PULL_REQUEST" }), "artifact_invalid"],
    ["a path out of the workspace", report({ data: { filepath: "../x" } }), "artifact_invalid"],
    ["an absolute path", report({ data: { filepath: "/etc/passwd" } }), "artifact_invalid"],
    ["a file without a name", report({ data: {} }), "artifact_invalid"],
    [
      "a line break in a media type",
      report({ data: { filepath: "x", mime_type: "text/html\r\nx: y" } }),
      "artifact_invalid",
    ],
    [
      "a screenshot that is no image",
      report({ type: "SCREENSHOT", data: { mime_type: "text/html" } }),
      "artifact_invalid",
    ],
    ["a plan that is no text", report({ type: "PLAN", content: new Uint8Array([0xff]) }), "artifact_invalid"],
    ["an upload without a hash", upload({ sha256: "" }), "artifact_invalid"],
    ["an upload that is too large", upload({ sizeBytes: ARTIFACT_LIMITS.fileBytesMax + 1 }), "artifact_too_large"],
    [
      "inline content that is too large",
      report({ content: new Uint8Array(ARTIFACT_LIMITS.inlineBytesMax + 1) }),
      "artifact_too_large",
    ],
    [
      "a reference to a script",
      report({ type: "EXTERNAL_REFERENCE", data: { reference_type: "t", url: "javascript:alert(1)" } }),
      "artifact_invalid",
    ],
    [
      "a reference without a type",
      report({ type: "EXTERNAL_REFERENCE", data: { url: "https://e.com" } }),
      "artifact_invalid",
    ],
    [
      "metadata that is a list",
      report({ type: "EXTERNAL_REFERENCE", data: { reference_type: "t", url: "https://e.com", metadata: [] } }),
      "artifact_invalid",
    ],
  ])("%s", (_, given, reason) => expect(() => checkNewArtifact(given)).toThrow(expect.objectContaining({ reason })));
});

test.each([
  ["http://e.com:80", "http://e.com/"],
  ["https://u@e.com/", undefined],
  ["ftp://e.com/", undefined],
  ["nonsense", undefined],
  [`https://e.com/${"a".repeat(2048)}`, undefined],
])("the canonical form of %s is %s", (text, expected) => expect(canonicalUrl(text)).toBe(expected));

describe("as shown", () => {
  const anArtifact = (over: Partial<Artifact>): Artifact => ({
    uid: "a" as ArtifactUid,
    runUid: "r" as RunUid,
    type: "FILE",
    data: {},
    isPublic: false,
    createdAt: new Date(0),
    ...over,
  });
  const file = anArtifact({ data: { filename: "b", filepath: "a/b", mime_type: "text/plain" }, sizeBytes: 7 });
  const download = { url: "u", expiresAt: new Date(0) };

  test.each<[Artifact, object]>([
    [
      anArtifact({ type: "PLAN", data: { title: "T" }, content: "c" }),
      { document_uid: "a", artifact_uid: "a", notebook_uid: "a", title: "T" },
    ],
    [
      anArtifact({ type: "PULL_REQUEST", data: { url: "u", branch: "b" } }),
      { url: "u", branch: "b", status: "unknown" },
    ],
    [
      anArtifact({ type: "PULL_REQUEST", data: { url: "u", branch: "b" }, pullRequestStatus: "open" }),
      { url: "u", branch: "b", status: "open" },
    ],
    [file, { artifact_uid: "a", filename: "b", filepath: "a/b", mime_type: "text/plain", size_bytes: 7 }],
    [
      anArtifact({ type: "SCREENSHOT", data: { mime_type: "image/png" }, sizeBytes: 1 }),
      { artifact_uid: "a", mime_type: "image/png" },
    ],
  ])("in a run: %j", (artifact, expected) => expect(artifactItemData(artifact)).toEqual(expected));

  test("a file has a download URL, and anonymous readers do not receive its path", () => {
    expect(artifactDetailData(file, download, false)).toEqual({
      download_url: "u",
      expires_at: "1970-01-01T00:00:00.000Z",
      content_type: "text/plain",
      filename: "b",
      filepath: "a/b",
      size_bytes: 7,
    });
    expect(artifactDetailData(file, download, true)).not.toHaveProperty("filepath");
  });
  test("a plan contains its text", () =>
    expect(artifactDetailData(anArtifact({ type: "PLAN", data: {}, content: "c" }), undefined, false)).toMatchObject({
      content: "c",
      content_type: "text/markdown",
    }));
  test.each([
    ["PLAN", true],
    ["FILE", true],
    ["SCREENSHOT", true],
    ["PULL_REQUEST", false],
    ["EXTERNAL_REFERENCE", false],
  ] as const)("a %s can be read by itself: %s", (type, expected) =>
    expect(isRetrievable(anArtifact({ type }))).toBe(expected),
  );
});
