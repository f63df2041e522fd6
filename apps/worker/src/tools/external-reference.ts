import { z } from "zod";
import { omitUndefined } from "@millwright/json";
import { defineTool } from "./tool.ts";

export const externalReference = defineTool({
  name: "external_reference",
  action: "report_artifact",
  category: "documents",
  description: "Reports the address of something that this run made or changed elsewhere, such as an issue.",
  isReadOnly: false,
  changes: "nothing",
  input: z.object({
    url: z.string().min(1),
    reference_type: z.string().optional(),
    title: z.string().optional(),
    public: z.boolean().optional(),
  }),
  shown: ({ url, title }) => ({ url, title }),
  async run({ url, reference_type: type = "link", title, public: isPublic = false }, { platform, callId }) {
    const data = omitUndefined({ url, reference_type: type, title });
    const { artifactUid } = await platform.createArtifact({
      clientArtifactId: callId,
      artifactType: "EXTERNAL_REFERENCE",
      data,
      public: isPublic,
    });
    return { output: { artifact_uid: artifactUid, url } };
  },
});
