import type { Artifact } from "./artifact.ts";
import type { NewRunEvent } from "./run-events.ts";

/** What a run's log says about a new artifact; the artifact itself says the rest. */
export const artifactCreated = ({ uid, type, data }: Pick<Artifact, "uid" | "type" | "data">, executionId: number): NewRunEvent => {
  const { title = data["filename"], url } = data;
  return {
    kind: "artifact_created",
    executionId,
    payload: {
      artifact_uid: uid,
      artifact_type: type,
      ...(typeof title === "string" ? { title } : {}),
      ...(typeof url === "string" ? { url } : {}),
    },
  };
};
