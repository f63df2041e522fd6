import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { blobSettings, bucketSettings, directoryBlobs, openBucket, type BlobStore } from "@millwright/blobs";
import { systemClock } from "@millwright/clock";
import { readConfig } from "@millwright/config";
import { dataDirectoryOf } from "./platform.ts";

/** Returns where the platform stores files: the bucket or directory that the environment names, else the data directory. */
export function openBlobs(env: NodeJS.ProcessEnv): BlobStore {
  const { blobUrl, blobDir, ...bucket } = readConfig(env, { ...blobSettings, ...bucketSettings });
  if (blobUrl !== undefined) return openBucket(blobUrl, bucket, systemClock);
  // nothing is signed here
  const [publicUrl, signingKey] = ["http://localhost", randomBytes(32)];
  return directoryBlobs({
    dir: blobDir ?? join(dataDirectoryOf(env), "blobs"),
    publicUrl,
    signingKey,
    clock: systemClock,
  });
}
