/**
 * Reads a response of server-sent events of a run, in any fragmentation, and checks its sequence. The framing of
 * chunked responses is skipped: it never divides a line of an event.
 */
export class EventIds {
  /** The sequence number of the last event; 0 before the first. */
  last = 0;
  /** Whether the stream has ended because the run has. */
  isEnded = false;
  #rest = "";

  /** Returns how many events a fragment completed. Throws an Error if an event is missing, repeated or after the end. */
  take(fragment: string): number {
    const lines = (this.#rest + fragment).split("\n");
    this.#rest = lines.pop() ?? "";
    const before = this.last;
    for (const line of lines) {
      if (line === "event: end") this.isEnded = true;
      if (!line.startsWith("id: ")) continue;
      const id = Number(line.slice("id: ".length));
      if (this.isEnded || id !== this.last + 1) throw new Error(`Event ${id} follows event ${this.last}.`);
      this.last = id;
    }
    return this.last - before;
  }
}
