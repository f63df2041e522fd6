import { expect, test } from "@jest/globals";
import { errorsOf, filesOf, VALID } from "./marked-tree.ts";
import { ACCEPTED, REFUSED } from "./published-format.ts";

test.each(ACCEPTED)("takes %s", (_, files) => {
  expect(errorsOf(filesOf({ ...VALID, ...files }))).toEqual([]);
});

test.each(REFUSED)("refuses %s", (_, files) => {
  expect(errorsOf(filesOf({ ...VALID, ...files }))).not.toEqual([]);
});
