import type { BlobStore } from "@millwright/blobs";
import { bestEffort } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import { createHash } from "node:crypto";
import { newUid } from "@millwright/ids";
import { attachmentKey } from "../../storage/domain/blob-keys.ts";
import type { Attachment } from "../domain/message.ts";
import type { NewAttachment } from "../domain/new-run.ts";
import { storable } from "../domain/text.ts";

export type RunFilesDeps = {
  readonly blobs: Pick<BlobStore, "put" | "delete">;
  readonly log: Pick<Logger, "warn">;
};

/** Stores the files of a run before the run is created. Until then nothing refers to them. */
export const storeFiles = (deps: RunFilesDeps, files: readonly NewAttachment[]): Promise<Attachment[]> =>
  Promise.all(
    files.map(async ({ fileName, mimeType, data }) => {
      const file = {
        uid: newUid(),
        fileName: storable(fileName),
        mimeType: storable(mimeType),
        sizeBytes: data.length,
        sha256: sha256(data),
      };
      await deps.blobs.put(attachmentKey(file), data, { contentType: file.mimeType });
      return file;
    }),
  );

/** Deletes the files of a run that was not created. Never fails: a file to which nothing refers does no harm. */
export async function dropFiles(deps: RunFilesDeps, files: readonly Attachment[]): Promise<void> {
  await Promise.all(
    files.map((file) =>
      bestEffort("delete a file of a run that was not created", deps.log, () => deps.blobs.delete(attachmentKey(file))),
    ),
  );
}

/** Returns the SHA-256 of a file in hexadecimal. */
export const sha256 = (data: Uint8Array): string => createHash("sha256").update(data).digest("hex");
