import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { newUid } from "@millwright/ids";
import { identify, isAlive, type ProcessIdentity } from "../../state/process-identity.ts";
import type { Machine } from "../backend.ts";

/**
 * The on-disk state of a dispatching worker, used after a restart: its uid and the machines that it has requested.
 * Contains no secrets.
 */
export class MachineRecords {
  readonly #dir: string;

  private constructor(dir: string) {
    this.#dir = dir;
  }

  /** Opens the records below `root`. Throws file system errors, and an error if another process uses the directory. */
  static open(root: string): MachineRecords {
    const dir = join(resolve(root), "dispatched");
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const owner = readJson<ProcessIdentity>(join(dir, "owner"));
    if (owner && owner.pid !== process.pid && isAlive(owner))
      throw new Error(
        `${dir} is used by another worker (process ${owner.pid}): give each its own MILLWRIGHT_WORKER_DIR.`,
      );
    writeAtomically(join(dir, "owner"), JSON.stringify(identify(process.pid)));
    return new MachineRecords(dir);
  }

  instanceUid(): string {
    const file = join(this.#dir, "instance");
    const stored = readJson<{ uid: string }>(file)?.uid;
    if (stored) return stored;
    const uid = newUid();
    writeAtomically(file, JSON.stringify({ uid }));
    return uid;
  }

  all(): Machine[] {
    return readdirSync(this.#dir)
      .filter((name) => name.endsWith(".json"))
      .flatMap((name) => {
        const stored = readJson<Record<keyof Machine, string | number>>(join(this.#dir, name));
        return stored
          ? [
              {
                executionId: BigInt(stored.executionId),
                attempt: Number(stored.attempt),
                runUid: String(stored.runUid),
                startedMs: Number(stored.startedMs),
              },
            ]
          : [];
      });
  }

  put({ executionId, attempt, runUid, startedMs }: Machine): void {
    writeAtomically(
      this.#file({ executionId, attempt }),
      JSON.stringify({ executionId: String(executionId), attempt, runUid, startedMs }),
    );
  }

  remove(machine: Pick<Machine, "executionId" | "attempt">): void {
    rmSync(this.#file(machine), { force: true });
    rmSync(this.outputFile(machine), { force: true });
  }

  /** Returns the path of the log of a machine's commands and of their background processes. */
  outputFile({ executionId, attempt }: Pick<Machine, "executionId" | "attempt">): string {
    return join(this.#dir, `${executionId}-${attempt}.log`);
  }

  #file({ executionId, attempt }: Pick<Machine, "executionId" | "attempt">): string {
    return join(this.#dir, `${executionId}-${attempt}.json`);
  }
}

function writeAtomically(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

function readJson<T>(file: string): T | undefined {
  try {
    return (JSON.parse(readFileSync(file, "utf8")) as T | null) ?? undefined;
  } catch {
    return undefined; // the file is absent, or incomplete after a crash of this machine
  }
}
