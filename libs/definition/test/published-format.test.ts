import { expect, test } from "@jest/globals";
import { errorsOf, filesOf, VALID } from "./marked-tree.ts";
import { ACCEPTED, REFUSED } from "./published-format.ts";

test.each(ACCEPTED)("accepts %s", (_, files) => {
  expect(errorsOf(filesOf({ ...VALID, ...files }))).toEqual([]);
});

test.each(REFUSED)("rejects %s", (_, files) => {
  expect(errorsOf(filesOf({ ...VALID, ...files }))).not.toEqual([]);
});
