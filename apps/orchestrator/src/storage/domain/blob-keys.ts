/** The top-level folders of the blob store. */
export const BLOB_FOLDERS = ["artifacts", "attachments", "blocks", "snapshots", "transcripts", "uploads"] as const;

type BlobKey = `${(typeof BLOB_FOLDERS)[number]}/${string}`;

/**
 * Returns the key of an artifact's content. It contains the hash, so that a late upload cannot change stored content:
 * another announcement has another key.
 */
export const artifactKey = ({ runUid, uid }: { runUid: string; uid: string }, sha256: string): BlobKey =>
  `artifacts/${runUid}/${uid}-${sha256}`;

/** Returns the key of a message's file. */
export const attachmentKey = ({ uid }: { uid: string }): BlobKey => `attachments/${uid}`;

/**
 * Returns the key to which a client uploads an announced file, any number of times. Agents receive a copy that the
 * client cannot change.
 */
export const uploadKey = ({ uid }: { uid: string }): BlobKey => `uploads/${uid}`;

/** Returns the key of a workspace snapshot. It contains the hash for the same reason as an artifact's key. */
export const snapshotKeyOf = (
  runUid: string,
  { executionId, attempt }: { executionId: number; attempt: number },
  sha256: string,
): BlobKey => `snapshots/${runUid}/${executionId}-${attempt}-${sha256}`;

/** Returns the key of a run's transcript up to an event. Events never change, so the content of a key never does. */
export const transcriptKey = (runUid: string, lastSeq: number): BlobKey => `transcripts/${runUid}/${lastSeq}.jsonl`;

/**
 * Returns the key of a transcript that a third-party harness wrote itself. It contains the hash for the same reason as
 * an artifact's key.
 */
export const harnessTranscriptKey = (
  runUid: string,
  { executionId, attempt }: { executionId: number; attempt: number },
  sha256: string,
): BlobKey => `transcripts/${runUid}/own-${executionId}-${attempt}-${sha256}`;

/**
 * Returns the key of a conversation's block snapshot. `extent`: how far the events of the conversation's runs reached.
 */
export const blockSnapshotKey = (conversationUid: string, ownerUid: string, extent: number): BlobKey =>
  `blocks/${conversationUid}/${ownerUid}-${extent}.json`;

/** The media type of workspace snapshots. */
export const SNAPSHOT_TYPE = "application/x-tar";
