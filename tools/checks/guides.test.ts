/* oxlint-disable jest/no-standalone-expect -- withOwnNode declares a test */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { COMMANDS } from "../../apps/cli/src/commands/all.ts";
import { createProgram, RejectedLine } from "../../apps/cli/src/program.ts";
import { scriptedFences } from "../../apps/worker/src/model/scripted/fences.ts";
import { parseScript } from "../../apps/worker/src/model/scripted/parse-script.ts";

const root = resolve(import.meta.dirname, "../..");
const PAGES = [
  "README.md",
  ...globSync(["docs/**/*.md", "apps/*/README.md", "proto/README.md", "examples/**/README.md"], { cwd: root }),
];
const read = (page: string): string => readFileSync(join(root, page), "utf8");

/** Returns the fenced blocks of shell commands of a page. */
const shellOf = (page: string): string[] =>
  [...read(page).matchAll(/^(`{3,})sh\n([^]*?)^\1$/gm)].map(([, , text = ""]) => text);
const prose = (text: string): string => text.replace(/^(`{3,})[^]*?^\1$/gm, "").replace(/`[^`\n]*`/g, "");

/** Returns the anchors of a page's headings, as code hosts generate them. */
const anchorsOf = (page: string): string[] =>
  [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );

/** The Node.js that npm installs, on Linux. */
const OWN_NODE = join(root, "node_modules/.bin/node");
const withOwnNode = existsSync(OWN_NODE) ? test : test.skip;

withOwnNode("the documented command starts every service, whatever Node.js the shell has", () => {
  const [command = ""] = /^node_modules\/\.bin\/node [^#\n]+/m.exec(read("docs/operations/processes.md")) ?? [];
  for (const service of [
    "gateway",
    "orchestrator",
    "factories",
    "scheduler",
    "scoring",
    "metrics",
    "webhook-ingress",
  ]) {
    const words = command.trim().replace("gateway", service).split(/ +/);
    const { status, stderr } = spawnSync(words[0]!, words.slice(1), {
      cwd: root,
      encoding: "utf8",
      env: { PATH: "/usr/bin:/bin" },
    });
    expect([service, status, stderr]).toEqual([
      service,
      1,
      expect.stringMatching(/^Invalid configuration:\n {2}DATABASE_URL is required/),
    ]);
  }
});

test("a page with a server that npx downloads names the host that must be allowed", () => {
  const pages = PAGES.filter((page) => /"command": "npx"/.test(read(page)));
  expect(pages).toEqual(["docs/guides/mcp.md"]);
  expect(pages.filter((page) => !read(page).includes("MILLWRIGHT_EGRESS_ALLOW=registry.npmjs.org"))).toEqual([]);
});

test("every link between the pages leads somewhere", () => {
  const dead = PAGES.flatMap((page) =>
    [...prose(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = ""]) => {
      if (/^[a-z]+:/.test(link)) return [];
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? page : join(dirname(page), path);
      const isThere =
        existsSync(join(root, target)) &&
        (anchor === undefined || !target.endsWith(".md") || anchorsOf(target).includes(anchor));
      return isThere ? [] : [`${page}: ${link}`];
    }),
  );
  expect(dead).toEqual([]);
});

describe("commands in the documentation", () => {
  /** Splits a shell line into words, as far as the pages need it: with quotes, and without a trailing comment. */
  const wordsOf = (line: string): string[] =>
    [...line.replace(/\s#\s.*$/, "").matchAll(/"([^"]*)"|'([^']*)'|([^\s"']+)/g)].map(
      ([, double, single, bare]) => double ?? single ?? bare ?? "",
    );
  const commands = PAGES.flatMap((page) =>
    shellOf(page).flatMap((block) =>
      block
        .replaceAll("\\\n", " ")
        .replaceAll(/'[^']*'/g, (quoted) => quoted.replaceAll("\n", " "))
        .split("\n")
        .flatMap((line) => {
          const [, rest] = /(?:^|\s)(?:npx )?millwright (?!npm)([^|<>]+)/.exec(line) ?? [];
          return rest === undefined ? [] : [{ page, words: wordsOf(rest) }];
        }),
    ),
  );

  test("are commands and options that there are", async () => {
    expect(commands.length).toBeGreaterThan(30);
    const wrong: string[] = [];
    for (const { page, words } of commands) {
      const program = createProgram(
        COMMANDS,
        () => {},
        async () => {},
      );
      await program.parseAsync(words, { from: "user" }).catch((error: unknown) => {
        if (error instanceof RejectedLine)
          wrong.push(`${page}: millwright ${words.join(" ")}: ${error.message.split("\n")[0]}`);
      });
    }
    expect(wrong).toEqual([]);
  });

  test("contains only valid scripts", () => {
    const prompts = PAGES.flatMap(shellOf).flatMap((block) =>
      [...block.matchAll(/'([^']*scripted\n[^']*)'/g)].map(([, prompt = ""]) => prompt),
    );
    expect(prompts.length).toBeGreaterThan(0);
    expect(prompts.filter((prompt) => scriptedFences(prompt).flatMap(parseScript).length === 0)).toEqual([]);
  });
});
