import type { JsonObject } from "@bufbuild/protobuf";
import type { Masker } from "../spool/masker.ts";
import type { NewArtifact, PlatformClient } from "./execution-context.ts";

/** The platform as one that no secret is told: titles, descriptions, plans and bodies of requests are masked; files are handed over as they are. */
export const maskedPlatform = (platform: PlatformClient, masker: Masker): PlatformClient => ({
  ...platform,
  createArtifact: (artifact) =>
    platform.createArtifact({ ...artifact, data: masker.value(artifact.data), ...maskedContent(artifact, masker) }),
  openPullRequest: (pullRequest) =>
    platform.openPullRequest({
      ...pullRequest,
      title: masker.text(pullRequest.title),
      body: masker.text(pullRequest.body),
    }),
  rest: (method, path, body, headers) => platform.rest(method, path, body && masker.value<JsonObject>(body), headers),
});

/** A plan is a text that people read where events are read. */
const maskedContent = ({ artifactType, content }: NewArtifact, masker: Masker): Pick<NewArtifact, "content"> =>
  artifactType === "PLAN" && content
    ? { content: Buffer.from(masker.text(Buffer.from(content).toString("utf8"))) }
    : {};
