import { basename, extname } from "node:path";
import type { Cli } from "../command.ts";
import { readNamed } from "../files.ts";

type LocalFile = { readonly name: string; readonly type: string; readonly content: Uint8Array<ArrayBuffer> };
type Prepared = {
  attachment_id: string;
  upload_target: { url: string; method: string; headers: Record<string, string> };
};

/** Returns files as the request that creates a run accepts them. */
export const attachmentInputs = async (paths: readonly string[]) =>
  (await readFiles(paths)).map(({ name, type, content }) => ({
    file_name: name,
    mime_type: type,
    data: Buffer.from(content).toString("base64"),
  }));

/** Uploads files for a follow-up to a run. Returns the follow-up's references to them. */
export async function uploadFor(
  cli: Cli,
  runId: string,
  paths: readonly string[],
): Promise<{ attachment_id: string }[]> {
  if (paths.length === 0) return [];
  const files = await readFiles(paths); // before anything is announced
  const asked = { files: files.map(({ name, type }) => ({ filename: name, mime_type: type })) };
  const { attachments } = await cli
    .api()
    .post<{ attachments: Prepared[] }>(`/agent/runs/${runId}/attachments/prepare`, asked);
  for (const [
    at,
    {
      upload_target: { url, method, headers },
    },
  ] of attachments.entries()) {
    const { ok, status } = await fetch(url, { method, headers, body: files[at]!.content });
    if (!ok) throw new Error(`${paths[at]} could not be uploaded: HTTP ${status}.`);
  }
  return attachments.map(({ attachment_id }) => ({ attachment_id }));
}

const readFiles = (paths: readonly string[]): Promise<LocalFile[]> =>
  Promise.all(
    paths.map(async (path) => ({
      name: basename(path),
      type: TYPES[extname(path).toLowerCase()] ?? "application/octet-stream",
      content: new Uint8Array(await readNamed(path)),
    })),
  );

const TYPES: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".pdf": "application/pdf",
  ".txt": "text/plain",
  ".log": "text/plain",
  ".md": "text/markdown",
  ".csv": "text/csv",
  ".json": "application/json",
};
