import { randomBytes } from "node:crypto";
import { directoryBlobs, openBucket } from "@millwright/blobs";
import { systemClock } from "@millwright/clock";
import { addressOf, findingsAt, messageOf, type Finding } from "./finding.ts";
import { checkBlobs } from "./check-blobs.ts";
import { checkDatabase } from "./check-database.ts";
import { checkNats } from "./check-nats.ts";
import { checkSandbox } from "./check-sandbox.ts";
import { checkServices, SERVICE_VARIABLES } from "./check-services.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** The variables that name what `preflight` checks. */
export const PREFLIGHT_VARIABLES: readonly string[] = [
  ...SERVICE_VARIABLES,
  "DATABASE_URL",
  "NATS_URL",
  "BLOB_DIR",
  "MILLWRIGHT_BLOB_URL",
  "MILLWRIGHT_WORKER_KEY",
];

/**
 * Checks what the environment of a service or worker names. Returns nothing if it names nothing. Never rejects.
 */
export async function preflight(env: Env): Promise<Finding[]> {
  const { DATABASE_URL: database, NATS_URL: nats } = env;
  const found = await Promise.all([
    checkServices(env),
    database ? checkDatabase(database, needsOf(env)) : [],
    nats ? checkNats(nats) : [],
    checkFiles(env),
    isWorker(env) && env["MILLWRIGHT_SANDBOX"] !== "none" ? checkSandbox(env["PATH"]) : [],
  ]);
  return found.flat();
}

const POOL_DEFAULT = 10;

const needsOf = (env: Env) => ({
  extensions: isOrchestrator(env) ? ["pg_trgm"] : [],
  connections: Number(env["DATABASE_POOL"] || POOL_DEFAULT),
});

/** The orchestrator stores files and does not name itself. */
const isOrchestrator = (env: Env): boolean =>
  !env["ORCHESTRATOR_URL"] && Boolean(env["BLOB_DIR"] || env["MILLWRIGHT_BLOB_URL"]);

/** A gateway also has a worker key, beside its database. */
const isWorker = (env: Env): boolean => Boolean(env["MILLWRIGHT_WORKER_KEY"]) && !env["DATABASE_URL"];

/** Checks the directory or bucket. A gateway of a platform with a bucket has no credentials and needs none. */
export async function checkFiles(env: Env): Promise<Finding[]> {
  const { BLOB_DIR: dir, MILLWRIGHT_BLOB_URL: bucket } = env;
  if (dir) {
    const store = directoryBlobs({
      dir,
      publicUrl: "http://localhost",
      signingKey: randomBytes(32),
      clock: systemClock,
    });
    return checkBlobs(store, dir);
  }
  if (!bucket || (env["ORCHESTRATOR_URL"] && !env["AWS_ACCESS_KEY_ID"])) return [];
  try {
    return await checkBlobs(openBucket(bucket, bucketValues(env), systemClock), addressOf(bucket));
  } catch (error) {
    return [findingsAt(addressOf(bucket))("files", messageOf(error), "Correct the variable.")];
  }
}

const bucketValues = (env: Env) => ({
  awsRegion: env["AWS_REGION"],
  awsAccessKeyId: env["AWS_ACCESS_KEY_ID"],
  awsSecretAccessKey: env["AWS_SECRET_ACCESS_KEY"],
  awsSessionToken: env["AWS_SESSION_TOKEN"],
});
