import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "@jest/globals";
import { CHOICES } from "../../apps/cli/src/choices.ts";

const reference = readFileSync(resolve(import.meta.dirname, "../../docs/rest-reference.md"), "utf8");

test.each(Object.entries(CHOICES))(
  "the allowed values of the command line are those of the API: %s",
  (_name, choices) => {
    const listed = choices.map((choice) => `\`${choice}\``).join(" | ");
    expect(reference).toMatch(new RegExp(`(?<! \\| )${listed.replace(/[|.]/g, "\\$&")}(?! \\| \`(?!null))`));
  },
);
