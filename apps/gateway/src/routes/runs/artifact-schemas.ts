import { z } from "zod";
import { timestamp } from "../../rest/index.ts";

export const ArtifactType = z
  .enum(["PLAN", "PULL_REQUEST", "SCREENSHOT", "FILE", "EXTERNAL_REFERENCE"])
  .meta({ id: "ArtifactType" });

const artifact = <T extends z.infer<typeof ArtifactType>, D extends z.ZodType>(type: T, data: D) =>
  z.object({ artifact_type: z.literal(type), created_at: timestamp(), data });

export const ArtifactItem = z
  .discriminatedUnion("artifact_type", [
    artifact(
      "PLAN",
      z.object({
        document_uid: z.string(),
        artifact_uid: z.uuid().optional(),
        notebook_uid: z.string().optional(),
        title: z.string().optional(),
        url: z.string().optional(),
      }),
    ),
    artifact(
      "PULL_REQUEST",
      z.looseObject({
        url: z.string(),
        branch: z.string(),
        status: z.enum(["open", "draft", "merged", "closed", "unknown"]),
      }),
    ),
    artifact(
      "SCREENSHOT",
      z.object({ artifact_uid: z.uuid(), mime_type: z.string(), description: z.string().optional() }),
    ),
    artifact(
      "FILE",
      z.object({
        artifact_uid: z.uuid(),
        filename: z.string(),
        filepath: z.string(),
        mime_type: z.string(),
        title: z.string().optional(),
        description: z.string().optional(),
        size_bytes: z.int().optional(),
        thumbnail: z.object({ download_url: z.string(), expires_at: timestamp() }).optional(),
      }),
    ),
    artifact(
      "EXTERNAL_REFERENCE",
      z.object({
        reference_type: z.string().max(256),
        url: z.string().max(2048),
        title: z.string().optional(),
        metadata: z.looseObject({}).optional(),
      }),
    ),
  ])
  .meta({ id: "ArtifactItem" });
