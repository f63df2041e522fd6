import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { BATCH_BYTES_MAX, EventSpool } from "./event-spool.ts";

let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), "millwright-spool-"))));
afterEach(() => rmSync(dir, { recursive: true }));

const anEvent = (i: number, text = "") => ({ atMs: i, kind: "message", payload: { i, text } });
const seqs = (spool: EventSpool) => spool.nextBatch().map(({ clientSeq }) => clientSeq);

describe("the event spool", () => {
  test("numbers events from 1 and gives back the oldest that are not acknowledged", () => {
    const spool = new EventSpool(join(dir, "e"));
    expect([1, 2, 3].map((i) => spool.append(anEvent(i, "ä\n\u{1F600}")))).toEqual([1, 2, 3]);
    expect(spool.nextBatch()[0]).toEqual({ clientSeq: 1, ...anEvent(1, "ä\n\u{1F600}") });
    spool.acknowledge(2);
    expect([seqs(spool), spool.ackedSeq, spool.lastSeq]).toEqual([[3], 2, 3]);
    spool.acknowledge(1);
    spool.acknowledge(9); // this number was never sent
    expect(seqs(spool)).toEqual([3]);
  });

  test("fills a batch up to 200 events or 256 KiB, and never returns an empty one", () => {
    const many = new EventSpool(join(dir, "many"));
    for (let i = 0; i < 201; i++) many.append(anEvent(i));
    expect(seqs(many)).toHaveLength(200);
    const large = new EventSpool(join(dir, "large"));
    for (let i = 0; i < 5; i++) large.append(anEvent(i, "x".repeat(60_000)));
    expect(seqs(large)).toEqual([1, 2, 3, 4]);
    const huge = new EventSpool(join(dir, "huge"));
    huge.append(anEvent(1, "x".repeat(BATCH_BYTES_MAX)));
    expect(seqs(huge)).toEqual([1]);
  });

  test("frees its disk space when everything is acknowledged, and continues", () => {
    const path = join(dir, "e");
    const spool = new EventSpool(path);
    for (let i = 0; i < 40; i++) spool.append(anEvent(i, "x".repeat(60_000)));
    spool.acknowledge(40);
    expect(statSync(path).size).toBe(0);
    expect([spool.append(anEvent(40)), seqs(spool)]).toEqual([41, [41]]);
    spool.remove();
    expect(existsSync(path)).toBe(false);
  });

  test("is readable by its owner only", () => {
    const path = join(dir, "e");
    expect(new EventSpool(path).lastSeq).toBe(0);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });
});
