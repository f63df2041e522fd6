import type { Sql } from "@millwright/database";
import { enqueueBlobDeletion } from "../../storage/store/blob-work.ts";
import type { Transaction } from "../../storage/store/transaction.ts";
import type { blockSnapshotStore, ConversationExtent, ConversationOfOwner } from "../store/block-snapshot-store.ts";
import { Readable } from "node:stream";
import type { BlobStore } from "@millwright/blobs";
import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { notFound } from "@millwright/errors";
import { blockSnapshotKey } from "../../storage/domain/blob-keys.ts";
import type { Run } from "../../runs/domain/run.ts";
import type { ListSharedRuns } from "../../runs/domain/session-sharing.ts";
import { BLOCKS_TYPE, BLOCKS_VERSION, TerminalBlocks } from "../domain/terminal-blocks.ts";
import { readEvents, type ListRunEvents } from "../../runs/usecases/read-all-events.ts";

export type WriteBlockSnapshotDeps = {
  readonly listRunEvents: ListRunEvents;
  readonly sql: Sql;
  readonly transaction: Transaction;
  readonly blockSnapshots: Pick<typeof blockSnapshotStore, "find" | "extent" | "replace">;
  readonly blobs: Pick<BlobStore, "put">;
  readonly clock: Clock;
};

/**
 * Writes the commands of a conversation and their terminal output to one blob, unless the newest blob is up to date.
 * Only runs with the given owner are included, so that a reader sees no run without permission. Safe to repeat and to
 * run concurrently. Returns the key of the blob, or undefined if no worker has reported any event of the conversation.
 */
export async function writeBlockSnapshot(
  deps: WriteBlockSnapshotDeps,
  of: ConversationOfOwner,
): Promise<string | undefined> {
  const { runs, extent, hasStarted } = await deps.blockSnapshots.extent(deps.sql, of);
  if (!hasStarted) return undefined;
  const known = await deps.blockSnapshots.find(deps.sql, of);
  if (known && known.extent >= extent) return known.blobKey;
  const blobKey = blockSnapshotKey(of.conversationUid, of.owner.uid, extent);
  await deps.blobs.put(
    blobKey,
    Readable.from(content(deps.listRunEvents, of.conversationUid, runs), { objectMode: false }),
    { contentType: BLOCKS_TYPE },
  );
  await deps.transaction(async (tx) => {
    const replaced = await deps.blockSnapshots.replace(tx, of, { blobKey, extent });
    if (replaced !== undefined) await enqueueBlobDeletion(tx, replaced, deps.clock.now());
  });
  return blobKey;
}

async function* content(
  listRunEvents: ListRunEvents,
  conversationUid: string,
  runs: ConversationExtent["runs"],
): AsyncGenerator<Buffer> {
  yield Buffer.from(`{"version":${BLOCKS_VERSION},"conversation_id":${JSON.stringify(conversationUid)},"blocks":[`);
  let separator = "";
  for (const { uid, lastSeq } of runs) {
    const blocks = new TerminalBlocks();
    for await (const event of readEvents(listRunEvents, uid, lastSeq)) blocks.add(event);
    for (const block of blocks.finish()) {
      yield Buffer.from(`${separator}\n${JSON.stringify(block)}`);
      separator = ",";
    }
  }
  yield Buffer.from("]}\n");
}

export type GetBlockSnapshotUrlDeps = Omit<WriteBlockSnapshotDeps, "blobs"> & {
  readonly findNewestOfConversation: (caller: Caller, conversationUid: string) => Promise<Run | undefined>;
  readonly listSharedRuns: ListSharedRuns;
  readonly blobs: Pick<BlobStore, "put" | "signDownload">;
};

const LINK_SECONDS = 900;

/**
 * Returns a link to the terminal output of a conversation, from the runs that have the same owner as the newest run
 * that the caller may see or that the conversation's link opens. The output of a run in progress is included up to now.
 *
 * Errors: conversation_not_found · block_snapshot_not_found.
 */
export async function getBlockSnapshotUrl(
  deps: GetBlockSnapshotUrlDeps,
  caller: Caller,
  conversationUid: string,
): Promise<{ url: string; expiresAt: Date }> {
  const newest =
    (await deps.findNewestOfConversation(caller, conversationUid)) ??
    (await deps.listSharedRuns(caller, conversationUid, "view")).at(-1);
  if (!newest) throw notFound("conversation");
  const blobKey = await writeBlockSnapshot(deps, newest);
  if (blobKey === undefined) throw notFound("block_snapshot");
  const url = await deps.blobs.signDownload(blobKey, {
    expiresInSeconds: LINK_SECONDS,
    contentType: BLOCKS_TYPE,
    filename: `blocks-${newest.conversationUid}.json`,
  });
  return { url, expiresAt: new Date(deps.clock.now().getTime() + LINK_SECONDS * 1000) };
}
