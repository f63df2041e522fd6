import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "@jest/globals";
import { nodeArguments } from "./node-arguments.ts";

test("a program is run from its source, and from its compiled file where there is no source", () => {
  const directory = mkdtempSync(join(tmpdir(), "millwright-node-arguments-"));
  try {
    const source = join(directory, "src/apps/worker/src/a/main.ts");
    expect(nodeArguments(pathToFileURL(source))).toEqual([join(directory, "src/apps/worker/dist/a/main.js")]);
    mkdirSync(join(source, ".."), { recursive: true });
    writeFileSync(source, "");
    expect(nodeArguments(pathToFileURL(source))).toEqual(["--conditions=@millwright/source", "--no-warnings", source]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
