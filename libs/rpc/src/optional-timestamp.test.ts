import { create } from "@bufbuild/protobuf";
import { timestampDate, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { optionalTimestamp } from "./optional-timestamp.ts";
import { expect, test } from "@jest/globals";

test("returns the time as a message", () => {
  const time = new Date("1969-12-31T23:59:59.250Z");
  expect(timestampDate(create(TimestampSchema, optionalTimestamp(time)))).toEqual(time);
  expect(optionalTimestamp(new Date(0))).toMatchObject({ seconds: 0n, nanos: 0 });
});

test.each([null, undefined])("returns undefined for %s", (time) => expect(optionalTimestamp(time)).toBeUndefined());
