/** Where files are in the blob store. */
export const BLOB_FOLDERS = ["artifacts", "attachments", "blocks", "snapshots", "transcripts", "uploads"] as const;

type BlobKey = `${(typeof BLOB_FOLDERS)[number]}/${string}`;

/** Holds the hash of the content, so that a late upload cannot change it: another announcement has another key. */
export const artifactKey = ({ runUid, uid }: { runUid: string; uid: string }, sha256: string): BlobKey =>
  `artifacts/${runUid}/${uid}-${sha256}`;

/** A file that came with a message. */
export const attachmentKey = ({ uid }: { uid: string }): BlobKey => `attachments/${uid}`;

/** Where the bytes of an announced file are put, as often as somebody likes; what an agent is given is a copy. */
export const uploadKey = ({ uid }: { uid: string }): BlobKey => `uploads/${uid}`;

/** Holds the hash, as an artifact's. */
export const snapshotKeyOf = (
  runUid: string,
  { executionId, attempt }: { executionId: number; attempt: number },
  sha256: string,
): BlobKey => `snapshots/${runUid}/${executionId}-${attempt}-${sha256}`;

/** Up to an event of a run, which never changes. */
export const transcriptKey = (runUid: string, lastSeq: number): BlobKey => `transcripts/${runUid}/${lastSeq}.jsonl`;

/** What an agent program of others has written down itself; holds the hash, as an artifact's. */
export const harnessTranscriptKey = (
  runUid: string,
  { executionId, attempt }: { executionId: number; attempt: number },
  sha256: string,
): BlobKey => `transcripts/${runUid}/own-${executionId}-${attempt}-${sha256}`;

/** As far as the events of a conversation's runs reached. */
export const blockSnapshotKey = (conversationUid: string, ownerUid: string, extent: number): BlobKey =>
  `blocks/${conversationUid}/${ownerUid}-${extent}.json`;

/** What snapshots are. */
export const SNAPSHOT_TYPE = "application/x-tar";
