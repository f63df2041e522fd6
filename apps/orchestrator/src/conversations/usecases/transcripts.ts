import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { enqueueBlobDeletion } from "../../storage/store/blob-work.ts";
import type { Transaction } from "../../storage/store/transaction.ts";
import type { harnessTranscriptStore, TranscriptStore } from "../store/transcript-store.ts";
import { Readable } from "node:stream";
import type { Caller } from "@millwright/caller";
import type { BlobStore } from "@millwright/blobs";
import { invalidArgument, notFound } from "@millwright/errors";
import { transcriptKey } from "../../storage/domain/blob-keys.ts";
import { harnessOf } from "../../runs/domain/run.ts";
import { transcriptLine, TRANSCRIPT_TYPE } from "../domain/transcript.ts";
import { readEvents, type ListRunEvents } from "../../runs/usecases/read-all-events.ts";
import { findTarget, type RunTarget, type RunTargetDeps } from "../../runs/usecases/run-target.ts";

export type WriteTranscriptDeps = {
  readonly listRunEvents: ListRunEvents;
  readonly sql: Sql;
  readonly transaction: Transaction;
  readonly transcripts: TranscriptStore;
  readonly blobs: Pick<BlobStore, "put">;
  readonly clock: Clock;
};

/**
 * Writes all events of a run to one blob, unless the newest blob is up to date. Safe to repeat and to run concurrently.
 * Returns the key of the blob, or undefined if no worker has reported any event of the run.
 */
export async function writeTranscript(deps: WriteTranscriptDeps, runUid: string): Promise<string | undefined> {
  const { lastSeq, hasStarted } = await deps.transcripts.extent(deps.sql, runUid);
  if (!hasStarted) return undefined;
  const known = await deps.transcripts.find(deps.sql, runUid);
  if (known && known.lastSeq >= lastSeq) return known.blobKey;
  const blobKey = transcriptKey(runUid, lastSeq);
  await deps.blobs.put(blobKey, Readable.from(lines(deps.listRunEvents, runUid, lastSeq), { objectMode: false }), {
    contentType: TRANSCRIPT_TYPE,
  });
  await deps.transaction(async (tx) => {
    const replaced = await deps.transcripts.replace(tx, runUid, { blobKey, lastSeq });
    if (replaced !== undefined) await enqueueBlobDeletion(tx, replaced, deps.clock.now());
  });
  return blobKey;
}

async function* lines(listRunEvents: ListRunEvents, runUid: string, lastSeq: number): AsyncGenerator<Buffer> {
  for await (const event of readEvents(listRunEvents, runUid, lastSeq)) yield Buffer.from(transcriptLine(event));
}

export type GetTranscriptUrlDeps = Omit<WriteTranscriptDeps, "blobs"> &
  RunTargetDeps & {
    readonly harnessTranscripts: Pick<typeof harnessTranscriptStore, "find">;
    readonly blobs: Pick<BlobStore, "get" | "put" | "signDownload">;
  };

/** Lifetime of the link, in seconds. */
const LINK_SECONDS = 900;

/**
 * Returns a link to the transcript of a run. A run in progress has a transcript up to now. A third-party harness has
 * its own transcript, which is returned if it was uploaded; otherwise the transcript consists of the run's events. For
 * a conversation, it is the transcript of the newest run. Conversations of the platform's own harness have no
 * transcript: they are read as messages and steps.
 *
 * Errors: run_not_found · conversation_not_found · no_raw_transcript (invalid_argument) · transcript_not_found.
 */
export async function getTranscriptUrl(deps: GetTranscriptUrlDeps, caller: Caller, target: RunTarget): Promise<string> {
  const run = await findTarget(deps, caller, target);
  if ("conversationUid" in target && harnessOf(run) === "oz")
    throw invalidArgument(
      "no_raw_transcript",
      "Conversations of the platform's own harness have no raw transcript. Read the conversation or a run's transcript.",
    );
  const blobKey =
    (harnessOf(run) === "oz" ? undefined : await ownTranscript(deps, run.uid)) ??
    (await writeTranscript(deps, run.uid));
  if (blobKey === undefined) throw notFound("transcript");
  return deps.blobs.signDownload(blobKey, {
    expiresInSeconds: LINK_SECONDS,
    contentType: TRANSCRIPT_TYPE,
    filename: `transcript-${run.uid}.jsonl`,
  });
}

/** Returns the key of an uploaded transcript. An announced upload may still be in progress, or may never be made. */
async function ownTranscript(
  { harnessTranscripts, sql, blobs }: Pick<GetTranscriptUrlDeps, "harnessTranscripts" | "sql" | "blobs">,
  runUid: string,
): Promise<string | undefined> {
  const key = await harnessTranscripts.find(sql, runUid);
  const blob = key === undefined ? undefined : await blobs.get(key);
  blob?.body.destroy();
  return blob && key;
}
