import type { BlobStore, SignedUpload } from "@millwright/blobs";
import type { Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { uploadKey } from "../../storage/domain/blob-keys.ts";
import {
  checkAnnounced,
  FILE_BYTES_MAX,
  UPLOAD_SECONDS,
  type AnnouncedFile,
  type PreparedAttachment,
} from "../domain/prepared-attachment.ts";
import { storable } from "../../runs/domain/text.ts";
import { findMessageTarget, type RunTarget, type MessageTargetDeps } from "../../runs/usecases/run-target.ts";

export type PrepareAttachmentsDeps = MessageTargetDeps & {
  insertPrepared(runUid: string, files: readonly PreparedAttachment[]): Promise<void>;
  readonly blobs: Pick<BlobStore, "signOpenUpload">;
};

export type Prepared = {
  readonly runUid: string;
  readonly attachments: readonly { readonly uid: string; readonly upload: SignedUpload }[];
};

/**
 * Returns URLs to upload the files that a follow-up to this run will refer to. A file has no effect until a follow-up
 * refers to it.
 *
 * Errors: run_not_found · conversation_not_found · not_authorized · attachments_invalid.
 */
export async function prepareAttachments(
  deps: PrepareAttachmentsDeps,
  caller: Caller,
  target: RunTarget,
  files: readonly AnnouncedFile[],
): Promise<Prepared> {
  const { uid: runUid } = await findMessageTarget(deps, caller, target);
  checkAnnounced(files);
  const prepared = files.map(({ fileName, mimeType }) => ({
    uid: newUid(),
    fileName: storable(fileName),
    mimeType: storable(mimeType),
  }));
  await deps.insertPrepared(runUid, prepared);
  const options = { expiresInSeconds: UPLOAD_SECONDS, sizeMax: FILE_BYTES_MAX };
  const attachments = await Promise.all(
    prepared.map(async ({ uid, mimeType }) => ({
      uid,
      upload: await deps.blobs.signOpenUpload(uploadKey({ uid }), { ...options, contentType: mimeType }),
    })),
  );
  return { runUid, attachments };
}
