import { omitUndefined } from "@millwright/json";
import type { Artifact } from "../../runs/domain/run-artifact.ts";
import type { NewRunEvent } from "../../runs/domain/run-events.ts";

type Subject = Pick<Artifact, "uid" | "type" | "data">;

/** Returns the event of a new artifact. It contains only uid, type, title and URL; the artifact stores the rest. */
export const artifactCreated = (artifact: Subject, executionId: number): NewRunEvent =>
  artifactEvent("artifact_created", artifact, executionId);

/** Returns the event of a plan whose text was replaced. */
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
    payload: omitUndefined({
      artifact_uid: uid,
      artifact_type: type,
      title: typeof title === "string" ? title : undefined,
      url: typeof url === "string" ? url : undefined,
    }),
  };
};
