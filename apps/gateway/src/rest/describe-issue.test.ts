import { expect, test } from "@jest/globals";
import { z } from "zod";
import { describeIssue } from "./describe-issue.ts";

test.each([
  ["an absent member", z.string(), undefined, "is required"],
  ["another type", z.string(), 7, "must be string (got number)"],
  ["null", z.object({}), null, "must be object (got null)"],
  ["a short text", z.string().min(3), "ab", "must have at least 3 characters (got 2)"],
  ["a long text, without repeating it", z.string().max(3), "secret", "must have at most 3 characters (got 6)"],
  ["too many entries", z.array(z.string()).max(1), ["a", "b"], "must have at most 1 entries (got 2)"],
  ["a small number", z.number().min(0.01), 0, "must be at least 0.01 (got 0)"],
  ["a number that must be greater", z.number().positive(), 0, "must be more than 0 (got 0)"],
  ["an unknown choice", z.enum(["a", "b"]), "c", "must be one of a, b"],
  ["an absent choice", z.enum(["a", "b"]), undefined, "is required: one of a, b"],
  ["another form", z.string().regex(/^a+$/), "b", "must match /^a+$/"],
  ["unknown members", z.strictObject({}), { a: 1 }, "has unknown members: a. Remove them"],
  ["a message of the schema", z.string().min(3, "is too short"), "ab", "is too short"],
])("describes %s", (_case, schema, value, message) => {
  const { error } = schema.safeParse(value, { error: describeIssue });
  expect(error?.issues.map((issue) => issue.message)).toEqual([message]);
});
