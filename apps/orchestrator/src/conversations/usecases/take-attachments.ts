import type { Readable } from "node:stream";
import { createHash } from "node:crypto";
import type { BlobStore } from "@millwright/blobs";
import { DomainError, isDomainError } from "@millwright/errors";
import { attachmentKey, uploadKey } from "../../storage/domain/blob-keys.ts";
import type { Attachment } from "../../runs/domain/message.ts";
import { FILE_BYTES_MAX, type PreparedAttachment } from "../domain/prepared-attachment.ts";
import { storable } from "../../runs/domain/text.ts";

export type TakeAttachmentsDeps = {
  /** Returns the files that were prepared for the run and have not expired. */
  findPrepared(runUid: string, uids: readonly string[]): Promise<readonly PreparedAttachment[]>;
  /** Stores the content of a file unless it has one. Returns the file with its final content. */
  settlePrepared(uid: string, content: Content): Promise<PreparedAttachment | undefined>;
  readonly blobs: Pick<BlobStore, "get" | "put">;
};

type Content = { readonly size: number; readonly sha256: string };

/** The files to which a follow-up refers: their uids, and the file names that replace the prepared ones, by uid. */
export type NamedAttachments = { readonly uids: readonly string[]; readonly names: Readonly<Record<string, string>> };

/**
 * Returns the uploaded files to which a follow-up to a run refers, copied to where they can no longer be changed. The
 * first follow-up that refers to a file decides its content.
 *
 * Errors: unknown_attachment · attachment_not_uploaded (both unsupported, code unknown_attachment) ·
 * attachment_too_large (too_large) · attachment_changed (conflict: it was uploaded again after its content was decided
 * and before it was copied).
 */
export async function takeAttachments(
  deps: TakeAttachmentsDeps,
  runUid: string,
  { uids, names }: NamedAttachments,
): Promise<Attachment[]> {
  if (uids.length === 0) return [];
  const prepared = new Map((await deps.findPrepared(runUid, uids)).map((attachment) => [attachment.uid, attachment]));
  const wanted = uids.map((uid) => {
    const found = prepared.get(uid.toLowerCase());
    if (!found) throw unknown(uid);
    return found;
  });
  const taken: Attachment[] = [];
  // One after the other, because they may be large.
  for (const [at, file] of wanted.entries()) taken.push(await take(deps, file, names[uids[at]!]));
  return taken;
}

async function take(
  deps: TakeAttachmentsDeps,
  file: PreparedAttachment,
  name: string | undefined,
): Promise<Attachment> {
  const { uid, mimeType } = file;
  const { content } = file.content ? file : ((await deps.settlePrepared(uid, await measure(deps, uid))) ?? {});
  if (!content) throw unknown(uid);
  await copy(deps, file, content);
  return {
    uid,
    fileName: name === undefined ? file.fileName : storable(name),
    mimeType,
    sizeBytes: content.size,
    sha256: content.sha256,
  };
}

async function measure(deps: TakeAttachmentsDeps, uid: string): Promise<Content> {
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of await uploaded(deps, uid)) {
    size += (chunk as Buffer).length;
    hash.update(chunk as Buffer);
  }
  return { size, sha256: hash.digest("hex") };
}

async function copy(
  deps: TakeAttachmentsDeps,
  { uid, mimeType }: PreparedAttachment,
  expected: Content,
): Promise<void> {
  const there = await deps.blobs.get(attachmentKey({ uid }));
  there?.body.destroy();
  if (there) return;
  await deps.blobs
    .put(attachmentKey({ uid }), await uploaded(deps, uid), { contentType: mimeType, expected })
    .catch((error: unknown) => {
      if (!isDomainError(error) || error.reason !== "blob_content_mismatch") throw error;
      throw new DomainError({
        kind: "conflict",
        reason: "attachment_changed",
        message: "The attachment was uploaded again while the follow-up was created. Prepare it again.",
        metadata: { attachment: uid },
      });
    });
}

async function uploaded({ blobs }: TakeAttachmentsDeps, uid: string): Promise<Readable> {
  const blob = await blobs.get(uploadKey({ uid }));
  if (!blob)
    throw problem(
      "attachment_not_uploaded",
      "The follow-up references an attachment that was not uploaded. Upload it first.",
      uid,
    );
  if (blob.size <= FILE_BYTES_MAX) return blob.body;
  blob.body.destroy();
  throw new DomainError({
    kind: "too_large",
    reason: "attachment_too_large",
    message: `An attachment must have at most ${FILE_BYTES_MAX} bytes (got ${blob.size}).`,
    metadata: { attachment: uid },
  });
}

const unknown = (uid: string) =>
  problem(
    "unknown_attachment",
    "The follow-up references an attachment that was not prepared for this run. Prepare it first.",
    uid,
  );

const problem = (reason: string, message: string, uid: string) =>
  new DomainError({ kind: "unsupported", reason, code: "unknown_attachment", message, metadata: { attachment: uid } });
