import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";

const root = new URL("../..", import.meta.url).pathname;

test("every test that the page on security names is there", () => {
  const named = [...readFileSync(`${root}docs/security.md`, "utf8").matchAll(/^ {2}- `(\S+\.test\.ts)`: (.+)$/gm)].map(
    ([, file = "", name = ""]) => ({ file, name }),
  );
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter(({ file, name }) => !readFileSync(root + file, "utf8").includes(`"${name}"`))).toEqual([]);
});
