import { z } from "zod";
import { defineTool } from "./tool.ts";

export const plan = defineTool({
  name: "plan",
  action: "create_document",
  category: "documents",
  description:
    "Reports a plan, in Markdown, for people to read. While a plan is requested, this ends the turn until the plan is approved.",
  isReadOnly: true,
  changes: "nothing",
  input: z.object({ title: z.string().min(1).max(500), markdown: z.string().min(1) }),
  shown: ({ title }) => ({ title }),
  async run({ title, markdown }, { platform, callId }) {
    const { artifactUid } = await platform.createArtifact({
      clientArtifactId: callId,
      artifactType: "PLAN",
      data: { title },
      content: Buffer.from(markdown),
    });
    return { output: { title, artifact_uid: artifactUid } };
  },
});
