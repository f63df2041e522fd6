import type { JsonObject } from "@bufbuild/protobuf";
import type { Masker } from "../spool/masker.ts";
import type { NewArtifact, PlatformClient } from "../context/platform-client.ts";

/**
 * Returns a platform client that masks secrets in titles, descriptions, plans and request bodies. Files are uploaded
 * unchanged.
 */
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

/** Masks the content of a plan, because users read it next to the events. */
const maskedContent = ({ artifactType, content }: NewArtifact, masker: Masker): Pick<NewArtifact, "content"> =>
  artifactType === "PLAN" && content
    ? { content: Buffer.from(masker.text(Buffer.from(content).toString("utf8"))) }
    : {};
