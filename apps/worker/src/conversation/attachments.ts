import { mkdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { worker } from "@millwright/contracts";
import type { ExecutionContext } from "../context/execution-context.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

const BYTES_MAX = 100 * 1024 * 1024;
const NAME_BYTES_MAX = 200;
const DIRECTORY = ".attachments";

/** Thrown for an attachment that cannot be fetched. The message is for users. */
export class AttachmentFailed extends Error {}

/**
 * Writes the attachments of a message to `.attachments/<uid>/<file name>` in the workspace, outside every repository.
 * The files are written from inside the sandbox, so a link in the workspace cannot redirect them outside. Returns the
 * paths as the agent sees them.
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

/**
 * Returns the path of an attachment in the workspace: one line with three segments, whatever the file is called,
 * because the path appears in the prompt and in commands.
 */
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

/**
 * Returns a name that is one path segment, without separators, leading dots or shell metacharacters. A long name is
 * shortened in the middle, so that it retains its extension.
 */
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
