import { expect, test } from "@jest/globals";
import { nextSweep } from "./sweep-blobs.ts";

test.each([
  ["2026-11-20T00:00:00.000Z", "2026-11-20T06:00:00.000Z"],
  ["2026-11-20T05:59:59.999Z", "2026-11-20T06:00:00.000Z"],
  ["2026-11-20T18:30:00.000Z", "2026-11-21T00:00:00.000Z"],
])("after %s the next sweep is at %s", (now, next) => expect(nextSweep(new Date(now)).toISOString()).toBe(next));
