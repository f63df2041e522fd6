import { existsSync } from "node:fs";
import { join } from "node:path";
import { loadOrCreateMasterKey, readKeyFile, type MasterKeys } from "@millwright/vault";

/** Returns the path of the master key of a data directory. */
export const masterKeyFile = (dataDir: string): string => join(dataDir, "master.key");

/** Returns the path of the other master key of a rotation, which need not exist. */
export const secondaryMasterKeyFile = (dataDir: string): string => join(dataDir, "master.key.secondary");

/**
 * Returns whether a platform with an embedded database was started in this directory. Must be called before the
 * directory is prepared.
 */
export const hasPlatform = (dataDir: string): boolean =>
  existsSync(join(dataDir, "postgres", "cluster", "PG_VERSION")) && existsSync(join(dataDir, "logs"));

/**
 * Reads the master key, or creates it for a new platform, and the other one of a rotation.
 *
 * Errors: a plain Error with the remedy if the key of an existing platform is missing, because a new key could not
 * decrypt its secrets.
 */
export function openMasterKeys(dataDir: string, isExisting: boolean): MasterKeys {
  const path = masterKeyFile(dataDir);
  if (isExisting && !existsSync(path)) {
    throw new Error(
      `The master key ${path} is missing, and ${dataDir} contains a platform whose secrets are sealed with it. ` +
        'Put the key back (mode 0600), for instance from the copy that "millwright backup" stored; ' +
        "or, to give up this platform and start a new one, set MILLWRIGHT_DATA_DIR to an empty directory.",
    );
  }
  const secondary = secondaryMasterKeyFile(dataDir);
  return {
    masterKey: loadOrCreateMasterKey(path),
    ...(existsSync(secondary) && { secondaryMasterKey: readKeyFile(secondary) }),
  };
}
