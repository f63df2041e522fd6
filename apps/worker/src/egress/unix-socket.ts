import { chmodSync, closeSync, constants, openSync } from "node:fs";
import type { Server } from "node:http";
import { basename, dirname } from "node:path";

/** Longer paths of sockets are refused by the system. */
const SOCKET_PATH_MAX = 100;

/**
 * Lets a server listen on a unix socket, for whoever is shown its directory. Answers what is to be called when the server has closed.
 * Errors: those of the file system.
 */
export async function listenOnSocket(server: Server, socketPath: string): Promise<() => void> {
  const isLong = Buffer.byteLength(socketPath) > SOCKET_PATH_MAX;
  const directory = isLong ? openSync(dirname(socketPath), constants.O_DIRECTORY) : undefined;
  const path = directory === undefined ? socketPath : `/proc/self/fd/${directory}/${basename(socketPath)}`;
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
  chmodSync(socketPath, 0o666); // who reaches the directory may use it, whatever user that is
  return () => {
    if (directory !== undefined) closeSync(directory);
  };
}
