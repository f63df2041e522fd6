import { closeSync, ftruncateSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import type { JsonObject } from "@bufbuild/protobuf";

/** What the platform takes in one batch. */
export const BATCH_EVENTS_MAX = 200;
export const BATCH_BYTES_MAX = 256 * 1024;

/** The file is emptied when everything in it is acknowledged and it has grown beyond this. */
const FILE_BYTES_MAX = 1024 * 1024;

export type SpooledEvent = {
  readonly clientSeq: number;
  readonly atMs: number;
  readonly kind: string;
  readonly payload: JsonObject;
};

/**
 * The events of one attempt that the platform has not acknowledged yet, in a file: an outage costs disk, not memory.
 * Only the places of the events in the file are held. Not kept over the end of the process: its attempt is lost with it.
 */
export class EventSpool {
  readonly #path: string;
  readonly #file: number;
  #places: { offset: number; bytes: number }[] = [];
  #end = 0;
  #ackedSeq = 0;

  constructor(path: string) {
    this.#path = path;
    this.#file = openSync(path, "wx+", 0o600);
  }

  /** The number of the last event added; numbers begin with 1 and have no gaps. */
  get lastSeq(): number {
    return this.#ackedSeq + this.#places.length;
  }

  get ackedSeq(): number {
    return this.#ackedSeq;
  }

  get hasPending(): boolean {
    return this.#places.length > 0;
  }

  /** Adds an event and answers its number. Errors: those of the file system (disk full). */
  append(event: Omit<SpooledEvent, "clientSeq">): number {
    const clientSeq = this.lastSeq + 1;
    const line = Buffer.from(`${JSON.stringify({ ...event, clientSeq })}\n`);
    for (let written = 0; written < line.length;)
      written += writeSync(this.#file, line, written, line.length - written, this.#end + written);
    this.#places.push({ offset: this.#end, bytes: line.length });
    this.#end += line.length;
    return clientSeq;
  }

  /** The oldest events not acknowledged, as many as one batch may hold (at least one, if there is one). */
  nextBatch(): SpooledEvent[] {
    let count = 0;
    let bytes = 0;
    for (const place of this.#places) {
      if (count >= BATCH_EVENTS_MAX || (count > 0 && bytes + place.bytes > BATCH_BYTES_MAX)) break;
      bytes += place.bytes;
      count++;
    }
    const first = this.#places[0];
    if (!first) return [];
    const text = Buffer.alloc(bytes); // places follow each other without gaps
    for (let read = 0; read < bytes;) {
      const more = readSync(this.#file, text, read, bytes - read, first.offset + read);
      if (more === 0) throw new Error("The event spool is shorter than it was.");
      read += more;
    }
    return text
      .toString("utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as SpooledEvent);
  }

  /** The platform has everything up to `seq`. An older or impossible number changes nothing. */
  acknowledge(seq: number): void {
    if (seq <= this.#ackedSeq || seq > this.lastSeq) return;
    this.#places = this.#places.slice(seq - this.#ackedSeq);
    this.#ackedSeq = seq;
    if (this.#places.length > 0 || this.#end < FILE_BYTES_MAX) return;
    ftruncateSync(this.#file);
    this.#end = 0;
  }

  /** Closes and removes the file. */
  remove(): void {
    closeSync(this.#file);
    rmSync(this.#path, { force: true });
  }
}
