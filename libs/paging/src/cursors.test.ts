import { describe, expect, test } from "@jest/globals";
import { clampPageSize, Cursors } from "./index.ts";

const cursors = new Cursors(new Uint8Array(32).fill(7));
const bind = { sort: "updated_at desc", filters: { state: ["QUEUED"], q: "ä" } };
const position = ["2026-11-20T10:00:00.123Z", "0199c2f0-1111-7abc-8def-0123456789ab", 3, null];

describe("a cursor", () => {
  const cursor = cursors.seal("runs", bind, position);

  test("is URL-safe and opens to its position", () => {
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(cursors.open("runs", bind, cursor)).toEqual(position);
  });

  test("is bound to the query, not to its spelling", () =>
    expect(
      cursors.open(
        "runs",
        { filters: { q: "ä", state: ["QUEUED"], absent: undefined }, sort: "updated_at desc" },
        cursor,
      ),
    ).toEqual(position));

  const foreign = new Cursors(new Uint8Array(32).fill(8)).seal("runs", bind, position);
  test.each([
    ["another list", "tasks", bind, cursor],
    ["another sort", "runs", { ...bind, sort: "created_at desc" }, cursor],
    ["another filter", "runs", { ...bind, filters: { ...bind.filters, q: "a" } }, cursor],
    ["an added filter", "runs", { ...bind, source: "API" }, cursor],
    ["another key", "runs", bind, foreign],
    ["a flipped letter", "runs", bind, (cursor.startsWith("A") ? "B" : "A") + cursor.slice(1)],
    ["a cut end", "runs", bind, cursor.slice(0, -4)],
    ["an added end", "runs", bind, `${cursor}=`],
    ["nonsense", "runs", bind, "%%%"],
    ["nothing", "runs", bind, ""],
  ])("does not open under %s", (_, list, question, text) =>
    expect(() => cursors.open(list, question, text)).toThrow(
      expect.objectContaining({ kind: "invalid_argument", reason: "invalid_cursor" }),
    ),
  );
});

test("a short key is rejected", () => expect(() => new Cursors(new Uint8Array(16))).toThrow("32 bytes"));

test.each([
  [undefined, 20],
  [0, 20],
  [1, 1],
  [50, 50],
  [5000, 100],
  [-3, 1],
  [2.9, 2],
])("a page size of %s returns %i rows", (requested, expected) =>
  expect(clampPageSize(requested, { default: 20, max: 100 })).toBe(expected),
);

test("a cursor of an accepted key opens, and new ones are of the first key", () => {
  const [current, previous] = [new Uint8Array(32).fill(9), new Uint8Array(32).fill(7)];
  const rotating = new Cursors(current, previous);
  expect(rotating.open("runs", bind, cursors.seal("runs", bind, position))).toEqual(position);
  expect(new Cursors(current).open("runs", bind, rotating.seal("runs", bind, position))).toEqual(position);
});
