import { expect, test } from "@jest/globals";
import { Masker } from "../spool/masker.ts";
import type { PlatformClient } from "../context/platform-client.ts";
import { maskedPlatform } from "./masked-platform.ts";

test("titles, descriptions, plans and bodies of requests show no secret; files are as they are", async () => {
  const calls: unknown[] = [];
  const remember = (...args: unknown[]) => (calls.push(...args), Promise.resolve({}));
  const platform = maskedPlatform(
    { createArtifact: remember, openPullRequest: remember, rest: remember } as unknown as PlatformClient,
    new Masker(["hunter2"]),
  );
  const content = Buffer.from("hunter2");
  await platform.createArtifact({
    clientArtifactId: "1",
    artifactType: "FILE",
    data: { title: "is hunter2", metadata: { of: ["hunter2"] } },
    content,
  });
  await platform.createArtifact({ clientArtifactId: "2", artifactType: "PLAN", data: {}, content });
  await platform.openPullRequest({
    owner: "o",
    repo: "r",
    headBranch: "b",
    headSha: "s",
    baseBranch: "main",
    title: "Use hunter2",
    body: "as hunter2",
  });
  await platform.rest("POST", "/api/v1/agent/runs", { prompt: `say ${content.toString("base64")}` });
  expect(calls.slice(0, 3)).toEqual([
    { clientArtifactId: "1", artifactType: "FILE", data: { title: "is ***", metadata: { of: ["***"] } }, content },
    { clientArtifactId: "2", artifactType: "PLAN", data: {}, content: Buffer.from("***") },
    { owner: "o", repo: "r", headBranch: "b", headSha: "s", baseBranch: "main", title: "Use ***", body: "as ***" },
  ]);
  expect(calls.slice(3)).toEqual([
    "POST",
    "/api/v1/agent/runs",
    { prompt: expect.not.stringContaining("aHVudGVy") },
    undefined,
  ]);
});
