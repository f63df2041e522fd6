import type { Artifact } from "./artifact.ts";
import type { NewRunEvent } from "./run-events.ts";

type Subject = Pick<Artifact, "uid" | "type" | "data">;

/** The event of a new artifact; further facts are in the artifact itself. */
export const artifactCreated = (artifact: Subject, executionId: number): NewRunEvent =>
  artifactEvent("artifact_created", artifact, executionId);

/** The event of a plan with a new text. */
export const artifactUpdated = (artifact: Subject, executionId: number): NewRunEvent =>
  artifactEvent("artifact_updated", artifact, executionId);

const artifactEvent = (
  kind: "artifact_created" | "artifact_updated",
  { uid, type, data }: Subject,
  executionId: number,
): NewRunEvent => {
  const { title = data["filename"], url } = data;
  return {
    kind,
    executionId,
    payload: {
      artifact_uid: uid,
      artifact_type: type,
      ...(typeof title === "string" ? { title } : {}),
      ...(typeof url === "string" ? { url } : {}),
    },
  };
};
