import type { BlobStore } from "@millwright/blobs";
import { valuesOf, withClient } from "../databases.ts";
import type { PlatformDatabases } from "../platform.ts";
import { ofOwner, type TeamScope } from "./team-scope.ts";

/** Folders of files, below which each run, attachment or conversation has a folder or a file of its own. */
const PREFIXES = `SELECT folder || '/' || uid AS value
   FROM runs, unnest(ARRAY['artifacts', 'snapshots', 'transcripts']) AS folder
  WHERE $owned
  UNION ALL SELECT 'blocks/' || conversation_uid FROM block_snapshots WHERE $owned`;

const FILES = `SELECT 'attachments/' || a.uid AS value
   FROM message_attachments a
   JOIN messages m ON m.uid = a.message_uid
   JOIN runs ON runs.uid = m.run_uid
  WHERE $owned
  UNION ALL
 SELECT folder || '/' || p.uid
   FROM prepared_attachments p
   JOIN runs ON runs.uid = p.run_uid, unnest(ARRAY['attachments', 'uploads']) AS folder
  WHERE $owned`;

/** Yields the keys of all stored files of a team. Files whose rows are gone are found by their run. */
export async function* teamBlobs(
  databases: PlatformDatabases,
  scope: TeamScope,
  blobs: Pick<BlobStore, "list">,
): AsyncGenerator<string> {
  const [prefixes, files] = await withClient(databases["orchestrator"]!, async (db) => {
    const read = (query: string) => valuesOf(db, query.replaceAll("$owned", ofOwner(scope)));
    return [await read(PREFIXES), await read(FILES)] as const;
  });
  for (const prefix of prefixes) for await (const { key } of blobs.list(prefix)) yield key;
  yield* files;
}
