import { closeSync, ftruncateSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import type { JsonObject } from "@bufbuild/protobuf";

/** The platform's limits of one batch. */
export const BATCH_EVENTS_MAX = 200;
export const BATCH_BYTES_MAX = 256 * 1024;

/** The file is truncated when all its events are acknowledged and it has grown beyond this size. */
const FILE_BYTES_MAX = 1024 * 1024;

export type SpooledEvent = {
  readonly clientSeq: number;
  readonly atMs: number;
  readonly kind: string;
  readonly payload: JsonObject;
};

/**
 * Stores the unacknowledged events of one attempt in a file, so that an outage uses disk space instead of memory. Only
 * the positions of the events are in memory. The spool does not outlive the process, because its attempt is lost with
 * the process.
 */
export class EventSpool {
  readonly #path: string;
  readonly #file: number;
  #positions: { offset: number; bytes: number }[] = [];
  #end = 0;
  #ackedSeq = 0;

  constructor(path: string) {
    this.#path = path;
    this.#file = openSync(path, "wx+", 0o600);
  }

  /** The number of the last event added. Numbers begin with 1 and have no gaps. */
  get lastSeq(): number {
    return this.#ackedSeq + this.#positions.length;
  }

  get ackedSeq(): number {
    return this.#ackedSeq;
  }

  get hasPending(): boolean {
    return this.#positions.length > 0;
  }

  /** Adds an event and returns its number. Throws file system errors (disk full). */
  append(event: Omit<SpooledEvent, "clientSeq">): number {
    const clientSeq = this.lastSeq + 1;
    const line = Buffer.from(`${JSON.stringify({ ...event, clientSeq })}\n`);
    for (let written = 0; written < line.length;)
      written += writeSync(this.#file, line, written, line.length - written, this.#end + written);
    this.#positions.push({ offset: this.#end, bytes: line.length });
    this.#end += line.length;
    return clientSeq;
  }

  /** Returns the oldest unacknowledged events that fit in one batch (at least one, if there is one). */
  nextBatch(): SpooledEvent[] {
    let count = 0;
    let bytes = 0;
    for (const position of this.#positions) {
      if (count >= BATCH_EVENTS_MAX || (count > 0 && bytes + position.bytes > BATCH_BYTES_MAX)) break;
      bytes += position.bytes;
      count++;
    }
    const first = this.#positions[0];
    if (!first) return [];
    const text = Buffer.alloc(bytes); // the positions are contiguous
    for (let read = 0; read < bytes;) {
      const more = readSync(this.#file, text, read, bytes - read, first.offset + read);
      if (more === 0) throw new Error("The event spool was truncated.");
      read += more;
    }
    return text
      .toString("utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as SpooledEvent);
  }

  /** Removes events up to `seq`, which the platform has stored. An older or impossible number has no effect. */
  acknowledge(seq: number): void {
    if (seq <= this.#ackedSeq || seq > this.lastSeq) return;
    this.#positions = this.#positions.slice(seq - this.#ackedSeq);
    this.#ackedSeq = seq;
    if (this.#positions.length > 0 || this.#end < FILE_BYTES_MAX) return;
    ftruncateSync(this.#file);
    this.#end = 0;
  }

  /** Closes and removes the file. */
  remove(): void {
    closeSync(this.#file);
    rmSync(this.#path, { force: true });
  }
}
