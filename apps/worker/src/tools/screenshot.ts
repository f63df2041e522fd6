import { z } from "zod";
import { omitUndefined } from "@millwright/json";
import { absolute, onPath } from "./paths.ts";
import { defineTool } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

const BYTES_MAX = 20 * 1024 * 1024;

/** Returns the image type of the content, regardless of the file name. */
function imageType(content: Buffer): string | undefined {
  if (content.subarray(0, 8).equals(Buffer.from("89504e470d0a1a0a", "hex"))) return "image/png";
  if (content.subarray(0, 3).equals(Buffer.from("ffd8ff", "hex"))) return "image/jpeg";
  if (/^GIF8[79]a/.test(content.subarray(0, 6).toString("latin1"))) return "image/gif";
  if (content.subarray(0, 4).toString("latin1") === "RIFF" && content.subarray(8, 12).toString("latin1") === "WEBP")
    return "image/webp";
  return undefined;
}

export const screenshot = defineTool({
  name: "screenshot",
  action: "use_computer",
  category: "computer",
  description: "Delivers an image file of the workspace (PNG, JPEG, GIF or WebP) as a screenshot.",
  isReadOnly: false,
  changes: "nothing",
  input: z.object({ file: z.string().min(1), description: z.string().optional(), public: z.boolean().optional() }),
  shown: ({ file }) => ({ path: file }),
  async run({ file, description, public: isPublic = false }, { workspace, platform, callId }) {
    const { sandbox } = workspace;
    const content = await onPath(file, () => sandbox.readFile(sandbox.workspace, absolute(workspace, file), BYTES_MAX));
    const mimeType = imageType(content);
    if (!mimeType) throw new ToolFailure(`${file} is not a PNG, JPEG, GIF or WebP image.`);
    const data = omitUndefined({ mime_type: mimeType, description });
    const { artifactUid } = await platform.createArtifact({
      clientArtifactId: callId,
      artifactType: "SCREENSHOT",
      data,
      public: isPublic,
      content,
    });
    return { output: { artifact_uid: artifactUid, mime_type: mimeType } };
  },
});
