import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type TestDirectory = {
  readonly path: string;
  make(path: string): Promise<unknown>;
  list(path: string): Promise<string[]>;
  remove(): Promise<void>;
};

/** Creates a temporary directory for a test. */
export async function aDirectory(): Promise<TestDirectory> {
  const path = await mkdtemp(join(tmpdir(), "millwright-worker-test-"));
  return {
    path,
    make: (directory) => mkdir(directory, { recursive: true }),
    list: (directory) => readdir(directory),
    remove: () => rm(path, { recursive: true, force: true }),
  };
}
