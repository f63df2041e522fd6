import { Readable } from "node:stream";
import type { Caller } from "@millwright/caller";
import type { BlobStore } from "@millwright/blobs";
import { invalidArgument, notFound } from "@millwright/errors";
import { transcriptKey } from "../domain/blob-keys.ts";
import { harnessOf } from "../domain/run.ts";
import { transcriptLine, TRANSCRIPT_TYPE } from "../domain/transcript.ts";
import { readEvents, type ListRunEvents } from "./read-all-events.ts";
import { findTarget, type RunTarget, type RunTargetDeps } from "./run-target.ts";

type TranscriptRecord = { readonly blobKey: string; readonly lastSeq: number };

export type WriteTranscriptDeps = {
  readonly listRunEvents: ListRunEvents;
  readonly findTranscript: (runUid: string) => Promise<TranscriptRecord | undefined>;
  /** The newest seq of the run, and whether an agent ever had it. */
  readonly transcriptExtent: (runUid: string) => Promise<{ readonly lastSeq: number; readonly hasStarted: boolean }>;
  /** Records the newest blob, and lets the one it replaces be deleted once no link to it works any more. */
  readonly recordTranscript: (runUid: string, record: TranscriptRecord) => Promise<void>;
  readonly blobs: Pick<BlobStore, "put">;
};

/**
 * Writes everything that happened in a run into one blob, unless the newest blob has it already. Safe to repeat and to run
 * twice at once. Answers the blob's key; undefined for a run that no worker ever touched.
 */
export async function writeTranscript(deps: WriteTranscriptDeps, runUid: string): Promise<string | undefined> {
  const { lastSeq, hasStarted } = await deps.transcriptExtent(runUid);
  if (!hasStarted) return undefined;
  const known = await deps.findTranscript(runUid);
  if (known && known.lastSeq >= lastSeq) return known.blobKey;
  const blobKey = transcriptKey(runUid, lastSeq);
  await deps.blobs.put(blobKey, Readable.from(lines(deps.listRunEvents, runUid, lastSeq), { objectMode: false }), {
    contentType: TRANSCRIPT_TYPE,
  });
  await deps.recordTranscript(runUid, { blobKey, lastSeq });
  return blobKey;
}

async function* lines(listRunEvents: ListRunEvents, runUid: string, lastSeq: number): AsyncGenerator<Buffer> {
  for await (const event of readEvents(listRunEvents, runUid, lastSeq)) yield Buffer.from(transcriptLine(event));
}

export type GetTranscriptUrlDeps = Omit<WriteTranscriptDeps, "blobs"> &
  RunTargetDeps & {
    /** Where the run's agent program of others puts its own. */
    readonly findHarnessTranscript: (runUid: string) => Promise<string | undefined>;
    readonly blobs: Pick<BlobStore, "get" | "put" | "signDownload">;
  };

/** How long the link works (fields-runs §6.9). */
const LINK_SECONDS = 900;

/**
 * A link to the transcript of a run; of a run in progress, as far as it is. An agent program of others keeps its own, which it is where there is
 * one (fields-runs §6.9); else it is what happened in the run. Asked for by conversation it is that of the newest run, and the platform's own harness keeps none (API spec §4): its conversations are read as messages and steps.
 *
 * Errors: run_not_found · conversation_not_found · no_raw_transcript (invalid_argument) · transcript_not_found.
 */
export async function getTranscriptUrl(deps: GetTranscriptUrlDeps, caller: Caller, target: RunTarget): Promise<string> {
  const run = await findTarget(deps, caller, target);
  if ("conversationUid" in target && harnessOf(run) === "oz")
    throw invalidArgument(
      "no_raw_transcript",
      "Conversations of the platform's own harness have no raw transcript; read the conversation, or the transcript of a run.",
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

/** What was announced may still be under way, or never have come. */
async function ownTranscript(
  { findHarnessTranscript, blobs }: Pick<GetTranscriptUrlDeps, "findHarnessTranscript" | "blobs">,
  runUid: string,
): Promise<string | undefined> {
  const key = await findHarnessTranscript(runUid);
  const blob = key === undefined ? undefined : await blobs.get(key);
  blob?.body.destroy();
  return blob && key;
}
