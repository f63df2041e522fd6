import { posix } from "node:path";
import { z } from "zod";
import { absolute, onPath, shownPath } from "./paths.ts";
import { defineTool } from "./tool.ts";

const BYTES_MAX = 100 * 1024 * 1024;
const MEDIA_TYPES: Record<string, string> = {
  ".txt": "text/plain",
  ".log": "text/plain",
  ".md": "text/markdown",
  ".csv": "text/csv",
  ".html": "text/html",
  ".xml": "application/xml",
  ".json": "application/json",
  ".yaml": "application/yaml",
  ".yml": "application/yaml",
  ".pdf": "application/pdf",
  ".zip": "application/zip",
  ".gz": "application/gzip",
  ".tar": "application/x-tar",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".svg": "image/svg+xml",
  ".patch": "text/x-diff",
  ".diff": "text/x-diff",
};

/** Creates an artifact once per call, because the platform identifies it by the call's id. */
export const artifact = defineTool({
  name: "artifact",
  action: "report_artifact",
  category: "documents",
  description: "Delivers a file of the workspace as a result of the run.",
  isReadOnly: false,
  changes: "nothing",
  input: z.object({
    file: z.string().min(1),
    title: z.string().optional(),
    description: z.string().optional(),
    public: z.boolean().optional(),
  }),
  shown: ({ file, title }) => ({ path: file, title }),
  async run({ file, public: isPublic = false, ...facts }, { workspace, platform, callId }) {
    const { sandbox } = workspace;
    const content = await onPath(file, () => sandbox.readFile(sandbox.workspace, absolute(workspace, file), BYTES_MAX));
    const filepath = shownPath(workspace, file);
    const mimeType = MEDIA_TYPES[posix.extname(filepath).toLowerCase()] ?? "application/octet-stream";
    const { artifactUid } = await platform.createArtifact({
      clientArtifactId: callId,
      artifactType: "FILE",
      data: { filename: posix.basename(filepath), filepath, mime_type: mimeType, ...facts },
      public: isPublic,
      content,
    });
    return { output: { artifact_uid: artifactUid, path: filepath, size_bytes: content.length } };
  },
});
