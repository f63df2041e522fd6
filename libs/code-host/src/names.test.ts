import { expect, test } from "@jest/globals";
import { isBranchName, isRepositoryName, isSha } from "./index.ts";

test.each(["main", "agent/0199c2f0", "feature/ä-ö", "v1.0", "a@b", "x{y", "release-2026.11"])(
  "%j is a branch name",
  (name) => expect(isBranchName(name)).toBe(true),
);

test.each([
  "",
  "@",
  "HEAD",
  "-x",
  "--upload-pack=x",
  "/a",
  "a/",
  "a//b",
  "a..b",
  "a b",
  "a\nb",
  "a\tb",
  "a~1",
  "a^",
  "a:b",
  "a?",
  "a*",
  "a[",
  "a\\b",
  "a@{1}",
  ".a",
  "a/.b",
  "a.lock",
  "a.lock/b",
  "a.",
  "x".repeat(251),
  "a\0b",
])("%j is not a branch name", (name) => expect(isBranchName(name)).toBe(false));

test.each([
  ["acme", true],
  ["My.Repo_1-x", true],
  [".github", true],
  [".", false],
  ["..", false],
  [".git", false],
  ["-x", false],
  ["a/b", false],
  ["a.git", false],
  ["a b", false],
  ["", false],
])("the repository name %j: %s", (name, expected) => expect(isRepositoryName(name)).toBe(expected));

test.each([
  ["a".repeat(40), true],
  ["0".repeat(64), true],
  ["A".repeat(40), false],
  ["a".repeat(41), false],
  ["main", false],
])("the commit id %s: %s", (text, expected) => expect(isSha(text)).toBe(expected));
