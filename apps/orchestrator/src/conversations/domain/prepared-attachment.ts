import { invalidArgument } from "@millwright/errors";

/** A file that a client is about to upload for a follow-up. */
export type AnnouncedFile = { readonly fileName: string; readonly mimeType: string };

/** A file that follow-ups of one run may reference. */
export type PreparedAttachment = AnnouncedFile & {
  readonly uid: string;
  /** The content when a follow-up first referenced it; absent: no follow-up has. */
  readonly content?: { readonly size: number; readonly sha256: string };
};

/** Maximum number of files of one follow-up. */
export const FILES_MAX = 25;
/** Maximum size of each file, in bytes. */
export const FILE_BYTES_MAX = 25_000_000;
/** How long the uid of a prepared file is valid. */
export const PREPARED_HOURS = 24;
/** How long a file may be uploaded. */
export const UPLOAD_SECONDS = 3600;
const NAME_BYTES_MAX = 255;

/** Checks files that a client announces. Errors: attachments_invalid (invalid_argument). */
export function checkAnnounced(files: readonly AnnouncedFile[]): void {
  if (files.length === 0 || files.length > FILES_MAX)
    throw invalid(`A request must prepare 1 to ${FILES_MAX} files (got ${files.length}).`);
  for (const { fileName, mimeType } of files) {
    checkFileName(fileName);
    if (mimeType === "" || mimeType.length > NAME_BYTES_MAX)
      throw invalid(`mime_type must have 1 to ${NAME_BYTES_MAX} characters (got ${mimeType.length}).`);
  }
}

/**
 * Checks a file name. It is only displayed, so it may contain any character; paths are derived from it elsewhere.
 * Errors: attachments_invalid (invalid_argument).
 */
export function checkFileName(name: string): void {
  if (name.trim() === "" || Buffer.byteLength(name) > NAME_BYTES_MAX)
    throw invalid(`A file name must have 1 to ${NAME_BYTES_MAX} bytes (got ${Buffer.byteLength(name)}).`);
}

/** Checks the files that a follow-up references. Errors: attachments_invalid (invalid_argument). */
export function checkNamed(uids: readonly string[], names: Readonly<Record<string, string>>): void {
  if (uids.length > FILES_MAX)
    throw invalid(`A follow-up must have at most ${FILES_MAX} attachments (got ${uids.length}).`);
  if (new Set(uids).size < uids.length) throw invalid("A follow-up must not reference the same attachment twice.");
  for (const name of Object.values(names)) checkFileName(name);
}

const invalid = (message: string) => invalidArgument("attachments_invalid", message);
