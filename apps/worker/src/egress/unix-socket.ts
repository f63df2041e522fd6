import { chmodSync, closeSync, constants, openSync } from "node:fs";
import type { Server } from "node:http";
import { basename, dirname } from "node:path";

/** The system rejects longer socket paths. */
const SOCKET_PATH_MAX = 100;

/**
 * Makes a server listen on a Unix socket, for processes that can access its directory. Returns a function to call when
 * the server has closed. Throws file system errors.
 */
export async function listenOnSocket(server: Server, socketPath: string): Promise<() => void> {
  const isLong = Buffer.byteLength(socketPath) > SOCKET_PATH_MAX;
  const directory = isLong ? openSync(dirname(socketPath), constants.O_DIRECTORY) : undefined;
  const path = directory === undefined ? socketPath : `/proc/self/fd/${directory}/${basename(socketPath)}`;
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
  chmodSync(socketPath, 0o666); // any user with access to the directory may connect
  return () => {
    if (directory !== undefined) closeSync(directory);
  };
}
