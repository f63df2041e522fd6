import { mkdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { worker } from "@millwright/contracts";
import type { ExecutionContext } from "../executions/execution-context.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

const BYTES_MAX = 100 * 1024 * 1024;
const NAME_BYTES_MAX = 200;
const DIRECTORY = ".attachments";

/** An attachment that cannot be had; the text is for people. */
export class AttachmentFailed extends Error {}

/**
 * Brings what is attached to a message into the workspace, `.attachments/<uid>/<file name>`, outside every repository. Files come through the
 * sandbox's own hands, so no link in the workspace can lead them astray. Answers the paths as the agent sees them.
 */
export async function fetchAttachments(
  ctx: Pick<ExecutionContext, "dir" | "platform">,
  sandbox: Sandbox,
  { attachments }: Pick<worker.InputMessage, "attachments">,
): Promise<string[]> {
  const paths: string[] = [];
  for (const { uid, fileName, downloadUrl } of attachments) {
    const path = attachmentPath(uid, fileName);
    const content = await fetchFile(ctx, safeName(uid), downloadUrl);
    await sandbox.writeFile(sandbox.workspace, path, content);
    paths.push(`${sandbox.workspace}/${path}`);
  }
  return paths;
}

/** Where in the workspace a file lies. One line, three segments, whatever somebody called it: it stands in the prompt, and commands are made of it. */
export const attachmentPath = (uid: string, fileName: string): string =>
  `${DIRECTORY}/${safeName(uid)}/${safeName(fileName)}`;

async function fetchFile(ctx: Pick<ExecutionContext, "dir" | "platform">, name: string, url: string): Promise<Buffer> {
  const directory = join(ctx.dir, "attachments");
  const file = join(directory, name);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await ctx.platform.download(url, file);
  try {
    if ((await stat(file)).size > BYTES_MAX) throw new AttachmentFailed("it is larger than 100 MB.");
    return await readFile(file);
  } finally {
    await rm(file, { force: true });
  }
}

/** One path segment: no separator, no leading dot, nothing a shell would trip over; a long name keeps its beginning and its extension. */
function safeName(name: string): string {
  const characters = Array.from(
    name
      .slice(0, 1_000)
      .replaceAll(/[^\p{L}\p{N}._ -]/gu, "_")
      .replace(/^\.+/, "_"),
  );
  while (Buffer.byteLength(characters.join("")) > NAME_BYTES_MAX)
    characters.splice(Math.floor(characters.length / 2), 1);
  return characters.join("") || "file";
}
