import { requireVerbAs, type Caller } from "@millwright/caller";
import type { BlobStore } from "@millwright/blobs";
import type { Clock } from "@millwright/clock";
import { DomainError, notFound } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import type { JsonObject } from "../../catalog/domain/agent-config.ts";
import type { Artifact } from "../../runs/domain/run-artifact.ts";
import {
  artifactDetailData,
  downloadName,
  downloadType,
  isRetrievable,
  type Download,
} from "../domain/artifact-views.ts";
import type { Run } from "../../runs/domain/run.ts";

export type GetArtifactDeps = {
  readonly findArtifact: (uid: string) => Promise<Artifact | undefined>;
  readonly findVisibleRun: (caller: Caller, uid: string) => Promise<Run | undefined>;
  readonly pullRequestUrlsOfTree: (runUid: string) => Promise<readonly string[]>;
  readonly blobs: Pick<BlobStore, "signDownload">;
  readonly clock: Clock;
};

export type ArtifactDetail = {
  readonly artifact: Artifact;
  readonly data: JsonObject;
  readonly source?: ArtifactSource;
  readonly downloadUrl: string;
};

/** The origin of a file or screenshot. `factoryUid` is the factory of the root run. */
export type ArtifactSource = {
  readonly rootRunUid: string;
  readonly factoryUid?: string;
  readonly pullRequestUrls: readonly string[];
};

/** Lifetime of a download URL, in seconds. */
const DOWNLOAD_SECONDS = 900;

/**
 * Returns an artifact with its content or a download URL. Public artifacts are readable by everyone, private ones by
 * the readers of their run.
 *
 * Errors: artifact_not_found (absent, not visible, or of a type that cannot be read by itself) ·
 * authentication_required (unauthenticated: an anonymous caller; the same error if the artifact does not exist).
 */
export async function getArtifact(
  deps: GetArtifactDeps,
  caller: Caller,
  uid: string,
  isAnonymous: boolean,
): Promise<ArtifactDetail> {
  const found = await deps.findArtifact(uid);
  const artifact = found && isRetrievable(found) ? found : undefined;
  if (isAnonymous && !artifact?.isPublic)
    throw new DomainError({
      kind: "unauthenticated",
      reason: "authentication_required",
      message: "The request has no API key. Send it as `Authorization: Bearer <key>`.",
    });
  const run = artifact && !isAnonymous ? await deps.findVisibleRun(caller, artifact.runUid) : undefined;
  if (!artifact || !(artifact.isPublic || run)) throw notFound("artifact");
  const download = artifact.blobKey === undefined ? undefined : await signed(deps, artifact, artifact.blobKey);
  return {
    artifact,
    data: artifactDetailData(artifact, download, isAnonymous),
    source: run && artifact.type !== "PLAN" ? await sourceOf(deps, caller, run) : undefined,
    downloadUrl: download?.url ?? "",
  };
}

/** Returns the origin of an artifact, without the factory if the caller may see the run but not its root run. */
async function sourceOf(deps: GetArtifactDeps, caller: Caller, run: Run): Promise<ArtifactSource> {
  const root = run.uid === run.rootRunUid ? run : await deps.findVisibleRun(caller, run.rootRunUid);
  return {
    rootRunUid: run.rootRunUid,
    ...omitUndefined({ factoryUid: root?.factoryUid }),
    pullRequestUrls: await deps.pullRequestUrlsOfTree(run.uid),
  };
}

async function signed(deps: GetArtifactDeps, artifact: Artifact, key: string): Promise<Download> {
  const url = await deps.blobs.signDownload(key, {
    expiresInSeconds: DOWNLOAD_SECONDS,
    contentType: downloadType(artifact),
    filename: downloadName(artifact),
  });
  return { url, expiresAt: new Date(deps.clock.now().getTime() + DOWNLOAD_SECONDS * 1000) };
}

export type UpdateArtifactDeps = Pick<GetArtifactDeps, "findArtifact" | "findVisibleRun"> & {
  readonly setPublic: (uid: string, isPublic: boolean) => Promise<void>;
};

/**
 * Makes an artifact public or private. A run token may change only the artifacts of its own run. Errors:
 * artifact_not_found · not_authorized.
 */
export async function updateArtifact(
  deps: UpdateArtifactDeps,
  caller: Caller,
  uid: string,
  isPublic: boolean,
): Promise<Artifact> {
  const artifact = await deps.findArtifact(uid);
  const run = artifact && (await deps.findVisibleRun(caller, artifact.runUid));
  if (!artifact || !run) throw notFound("artifact");
  requireVerbAs(caller, run.owner, "artifact.manage", "artifact");
  if (caller.run && caller.run.runUid !== run.uid)
    throw new DomainError({
      kind: "permission_denied",
      reason: "not_authorized",
      message: "A run token can change the artifacts of its own run only. Use an API key.",
    });
  await deps.setPublic(artifact.uid, isPublic);
  return { ...artifact, isPublic };
}
