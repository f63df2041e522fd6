import { expect, test } from "@jest/globals";
import { hasSimilar, searchedPieces } from "./similar-words.ts";

test.each<[string, string, boolean]>([
  ["authentcation", "fix the authentication flow", true],
  ["authentication", "fix the authentcation flow", true],
  ["authentcat", "fix the authentication flow", true],
  ["depoly", "deploy to production", true],
  ["deplyo prodction", "deploy to production", true],
  ["deploy prodction", "deploy to staging", false],
  ["rofo", "repair the roof", true],
  ["rofo", "clean the room", false],
  ["roff", "repair the roof", true],
  ["skils/depoly", "owner/repo:skills/deploy/skill.md", true],
  ["größse", "die größe der kiste", true],
  ["to depoly", "deploy to production", true],
  ["xx depoly", "deploy to production", false],
  ["xylophone", "deploy to production", false],
  ["telephone", "xylophone", false],
])("%s is similar to a word of %j: %s", (search, text, expected) =>
  expect(hasSimilar(text, searchedPieces(search.split(" "))!)).toBe(expected),
);

test("words of three letters and punctuation have no typos", () =>
  expect([searchedPieces(["abc", "8:"]), searchedPieces(["%%%"])]).toEqual([undefined, undefined]));
