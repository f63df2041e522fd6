import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { serviceCaller, type Caller } from "@millwright/caller";
import { manualClock } from "@millwright/clock";
import { newUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import { aCaller, domainError } from "@millwright/testing";
import { catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";

const clock = manualClock("2026-11-20T10:00:00Z");
let p: CatalogPlatform;
let caller: Caller;
let teamUid: TeamUid;
let root: string;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "millwright-skills-"));
  p = await catalogPlatform({ localRepositoryRoots: [root], clock });
  caller = aCaller();
  teamUid = caller.teams[0]!.teamUid;
  await p.catalogue.createCodeHost({ codeHost: { teamUid, name: "here", kind: "local", root } }, p.as(caller));
});
afterEach(async () => {
  await p.close();
  rmSync(root, { recursive: true });
});

const git = (directory: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", "-C", directory, ...args], {
    env: { PATH: process.env["PATH"], HOME: root, GIT_CONFIG_GLOBAL: "/dev/null" },
    stdio: ["ignore", "pipe", "ignore"],
  });

/** Commits files to the bare repository `<root>/acme/<name>.git`. */
function commit(name: string, files: Record<string, string | Uint8Array>, link?: string): void {
  const [work, bare] = [join(root, `${name}-work`), join(root, "acme", `${name}.git`)];
  mkdirSync(join(root, "acme"), { recursive: true });
  mkdirSync(work, { recursive: true });
  git(root, "init", "-q", "--bare", "-b", "main", bare);
  git(work, "init", "-q", "-b", "main");
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(work, path)), { recursive: true });
    writeFileSync(join(work, path), content);
  }
  if (link) {
    mkdirSync(dirname(join(work, link)), { recursive: true });
    symlinkSync("/etc/passwd", join(work, link));
  }
  git(work, "add", "-A");
  git(work, "commit", "-q", "-m", "Change");
  git(work, "push", "-q", bare, "main");
}

const skill = (name: string, description = `Does ${name}.`, body = `Do ${name}.`) =>
  `---\nname: ${name}\ndescription: ${description}\n---\n\n${body}\n`;
const environment = async (name: string, repo: string, owner = { ownerType: "team", ownerUid: teamUid as string }) =>
  (
    await p.catalogue.createEnvironment(
      { environment: { ...owner, config: { name, github_repos: [{ owner: "acme", repo }] } } },
      p.as(caller),
    )
  ).environment!.uid;
const list = async (ask: object = {}, who = caller) => (await p.catalogue.listSkills(ask, p.as(who))).skills;
const ids = async (ask: object = {}, who = caller) =>
  (await list(ask, who)).map(({ name, variants }) => [name, ...variants.map(({ id }) => id)]);

const SHOP = {
  ".agents/skills/review/SKILL.md": skill("review"),
  ".claude/skills/test/SKILL.md": skill("test"),
  "skills/deploy/SKILL.md": skill("deploy"),
  "docs/skills/no/SKILL.md": skill("no"),
  "skills/SKILL.md": skill("no"),
  "skills/deploy/more/SKILL.md": skill("no"),
};

describe("skills of repositories", () => {
  test("are those in the directories that agents read, with the environments that have the repository", async () => {
    commit("shop", SHOP);
    const uid = await environment("web", "shop");
    await environment("other", "nowhere");
    const [deploy, ...others] = await list();
    expect(deploy).toMatchObject({
      name: "deploy",
      variants: [
        {
          id: "acme/shop:skills/deploy/SKILL.md",
          description: "Does deploy.",
          basePrompt: "Do deploy.",
          owner: "acme",
          repo: "shop",
          path: "skills/deploy/SKILL.md",
          workerHost: "",
          error: "",
          environments: [{ uid, name: "web" }],
        },
      ],
    });
    expect(others.map(({ name }) => name)).toEqual(["review", "test"]);
    expect(deploy!.variants[0]!.lastRunTimestamp).toBeUndefined();
  });

  test("of the same name are one skill with variants", async () => {
    commit("a", { "skills/review/SKILL.md": skill("review") });
    commit("b", { "skills/review/SKILL.md": skill("review"), "skills/again/SKILL.md": skill("review") });
    await Promise.all([environment("a", "a"), environment("b", "b")]);
    expect(await ids()).toEqual([
      ["review", "acme/a:skills/review/SKILL.md", "acme/b:skills/again/SKILL.md", "acme/b:skills/review/SKILL.md"],
    ]);
    expect(await ids({ repo: "ACME/a" })).toEqual([["review", "acme/a:skills/review/SKILL.md"]]);
    expect(await ids({ repo: "acme/c" })).toEqual([]);
  });

  test("that are malformed are listed with the reason on request", async () => {
    commit(
      "shop",
      {
        "skills/none/SKILL.md": "no frontmatter",
        "skills/bare/SKILL.md": "---\nname: bare\n---\n\nx\n",
        "skills/binary/SKILL.md": new Uint8Array([0xff, 0xfe, 0]),
        "skills/long/SKILL.md": "x".repeat(64 * 1024 + 1),
        "skills/fine/SKILL.md": skill("fine"),
      },
      "skills/link/SKILL.md",
    );
    await environment("web", "shop");
    expect(await ids()).toEqual([["fine", "acme/shop:skills/fine/SKILL.md"]]);
    const shown = (await list({ includeMalformed: true })).map(({ name, variants }) => [name, variants[0]!.error]);
    expect(shown).toEqual([
      ["bare", "description is required."],
      ["binary", "The file is not text in UTF-8."],
      ["fine", ""],
      ["none", expect.stringContaining("frontmatter")],
    ]);
  });

  test("are cached for ten minutes, unless a request refreshes them", async () => {
    commit("shop", { "skills/one/SKILL.md": skill("one") });
    await environment("web", "shop");
    const names = async (ask = {}) => (await ids(ask)).map(([name]) => name);
    expect(await names()).toEqual(["one"]);
    commit("shop", { "skills/two/SKILL.md": skill("two") });
    clock.advance(9 * 60_000);
    expect(await names()).toEqual(["one"]);
    expect(await names({ refresh: true })).toEqual(["one", "two"]);
    commit("shop", { "skills/three/SKILL.md": skill("three") });
    expect(await names()).toEqual(["one", "two"]);
    clock.advance(10 * 60_000);
    expect(await names()).toEqual(["one", "three", "two"]);
  });

  test("are found by their names and paths for the agents of a team, also those added after the repository was read", async () => {
    commit("shop", { "skills/one/SKILL.md": skill("one") });
    await environment("web", "shop");
    const find = async (texts: string[], who = caller) =>
      (await p.catalogue.findSkills({ teamUid, texts }, p.as(who))).specByText;
    const one = "acme/shop:skills/one/SKILL.md";
    expect(await find(["acme/shop:one", one, "acme/shop:two", "acme/other:one"])).toEqual({
      "acme/shop:one": one,
      [one]: one,
    });
    commit("shop", { "skills/two/SKILL.md": skill("two") });
    expect(await find(["acme/shop:two"])).toEqual({ "acme/shop:two": "acme/shop:skills/two/SKILL.md" });
    await expect(find([one], aCaller())).rejects.toEqual(domainError({ reason: "team_not_found" }));
  });

  test("are retained while a repository cannot be read", async () => {
    commit("shop", { "skills/one/SKILL.md": skill("one") });
    await environment("web", "shop");
    expect(await ids()).toHaveLength(1);
    rmSync(join(root, "acme"), { recursive: true });
    expect(await ids({ refresh: true })).toEqual([["one", "acme/shop:skills/one/SKILL.md"]]);
  });
});

describe("skills of factories", () => {
  const factoryUid = newUid<FactoryUid>();
  beforeEach(async () => {
    commit("app", { "skills/build/SKILL.md": skill("build") });
    const service = p.as(serviceCaller("factories", newUid()));
    const definition = {
      factory: { name: "f", repositories: [{ owner: "acme", repo: "app" }], agent_defaults: {} },
      agents: [],
      runners: [],
      skills: [
        { name: "triage", path: "skills/triage/SKILL.md", description: "Sorts.", body: "Sort." },
        { name: "bad", path: "skills/bad/SKILL.md", error: "why" },
      ],
    };
    await p.definitions.stageDefinition({ factoryUid, teamUid, version: 1n, definition: definition as never }, service);
    await p.definitions.activateDefinition({ factoryUid, version: 1n }, service);
  });
  test("are those of its repositories and those of its definition", async () => {
    expect(await ids()).toEqual([
      ["build", "acme/app:skills/build/SKILL.md"],
      ["triage", `factory/${factoryUid}:skills/triage/SKILL.md`],
    ]);
    expect((await list({ includeMalformed: true }))[0]).toMatchObject({ name: "bad", variants: [{ error: "why" }] });
    expect(await ids({ repo: `factory/${factoryUid}` })).toHaveLength(1);
  });
  test("are removed with a closed factory", async () => {
    await p.database.sql.query("INSERT INTO closed_factories (factory_uid) VALUES ($1)", [factoryUid]);
    expect(await ids()).toEqual([]);
  });
  const idOf = (factory: string) => `factory/${factory}:skills/triage/SKILL.md`;
  /** Creates a run of the skill by an agent of the factory. */
  async function aRunOf(factory: FactoryUid, text: string): Promise<string> {
    const agent = newUid();
    p.known.agents.set(agent, {
      agentUid: agent,
      agentName: "a",
      factoryUid: factory,
      definitionVersion: 1n,
      layers: [],
    });
    return (await p.run(caller, { agentUid: agent, factoryUid: factory, skill: text })).uid;
  }
  const runsOf = async (skillSpec: string) =>
    (await p.runs.listRuns({ skillSpec }, p.as(caller))).runs.map(({ uid }) => uid);

  test("are stored by runs and filtered by the listed ids, and skills of two factories with one path are separate", async () => {
    const otherFactory = newUid<FactoryUid>();
    const service = p.as(serviceCaller("factories", newUid()));
    const definition = {
      factory: { name: "other", repositories: [], agent_defaults: {} },
      agents: [],
      runners: [],
      skills: [{ name: "triage", path: "skills/triage/SKILL.md", description: "Other.", body: "Other." }],
    };
    await p.definitions.stageDefinition({ factoryUid: otherFactory, teamUid, version: 1n, definition }, service);
    await p.definitions.activateDefinition({ factoryUid: otherFactory, version: 1n }, service);

    const run = await aRunOf(factoryUid, "triage");
    expect((await p.getRun(caller, run)).agentConfig).toMatchObject({
      skill_spec: idOf(factoryUid),
      skills: [idOf(factoryUid)],
    });
    const triage = async () =>
      new Map(
        (await list())
          .find(({ name }) => name === "triage")!
          .variants.map(({ id, lastRunTimestamp }) => [id, lastRunTimestamp !== undefined]),
      );
    expect(await triage()).toEqual(
      new Map([
        [idOf(factoryUid), true],
        [idOf(otherFactory), false],
      ]),
    );
    const ofOther = await aRunOf(otherFactory, idOf(otherFactory));
    expect([await runsOf(idOf(factoryUid)), await runsOf(idOf(otherFactory))]).toEqual([[run], [ofOther]]);
    await expect(aRunOf(factoryUid, idOf(otherFactory))).rejects.toEqual(domainError({ reason: "skill_not_found" }));
  });
});

describe("skills of connected workers", () => {
  const reported = {
    owner: "acme",
    repo: "lab",
    path: "skills/lab/SKILL.md",
    name: "lab",
    description: "d",
    body: "b",
    error: "",
  };
  test("are listed with their worker while it is connected, for its team", async () => {
    await p.worker({ teamUid, host: "w1", skills: [reported] });
    await p.worker({ host: "of the platform", skills: [{ ...reported, name: "hidden" }] });
    const [lab, ...others] = await list();
    expect([lab, others]).toMatchObject([
      { name: "lab", variants: [{ id: "acme/lab:skills/lab/SKILL.md", workerHost: "w1" }] },
      [],
    ]);
    expect(await ids({}, aCaller())).toEqual([]);
    await p.database.sql.query("UPDATE worker_sessions SET last_seen_at = last_seen_at - interval '46 seconds'");
    expect(await ids()).toEqual([]);
  });
});

test("skills are sorted by name, or by their newest run with those never run last", async () => {
  commit("shop", { "skills/a/SKILL.md": skill("a"), "skills/b/SKILL.md": skill("B"), "skills/c/SKILL.md": skill("c") });
  await environment("web", "shop");
  expect((await ids()).map(([name]) => name)).toEqual(["a", "B", "c"]);
  await p.run(caller, { skill: "acme/shop:skills/b/SKILL.md" });
  await p.run(caller, { skill: "shop:c" });
  expect((await ids({ sortBy: "last_run" })).map(([name]) => name)).toEqual(["c", "B", "a"]);
  await expect(list({ sortBy: "age" })).rejects.toEqual(domainError({ reason: "invalid_sort" }));
  await expect(list({ repo: "x" })).rejects.toEqual(domainError({ reason: "invalid_repo" }));
});

describe("a run", () => {
  test.each(["acme/shop:skills/review/SKILL.md", "acme/shop:review", "shop:skills/review/SKILL.md", "shop:review"])(
    "of %s receives the repository's skill",
    async (text) => {
      commit("shop", { "skills/review/SKILL.md": skill("review", "Reviews.", "Look closely.") });
      await environment("web", "shop");
      const run = await p.run(caller, { skill: text });
      expect(run).toMatchObject({ agentConfig: { skill_spec: "acme/shop:skills/review/SKILL.md", name: "review" } });
      const { frozen } = await p.catalog.resolveRun(caller, {
        owner: { type: "team", uid: teamUid },
        config: {},
        skill: text,
      });
      expect(frozen.skills).toMatchObject([
        { name: "review", body: "Look closely.", spec: "acme/shop:skills/review/SKILL.md", preloaded: true },
      ]);
    },
  );
  test("of a skill that is malformed, absent, or in no repository of its owner is refused", async () => {
    commit("shop", { "skills/bad/SKILL.md": "x" });
    commit("secret", { "skills/review/SKILL.md": skill("review") });
    await environment("web", "shop");
    const asked = (text: string) =>
      p.catalog.resolveRun(caller, { owner: { type: "team", uid: teamUid }, config: {}, skill: text });
    await expect(asked("shop:bad")).rejects.toEqual(domainError({ reason: "skill_malformed" }));
    for (const text of ["shop:none", "acme/secret:review", "other/shop:bad", "x"])
      await expect(asked(text)).rejects.toEqual(domainError({ reason: "skill_not_found" }));
  });
});

test("a team's skills are visible to no other team", async () => {
  commit("shop", { "skills/one/SKILL.md": skill("one") });
  await environment("web", "shop");
  expect(await ids()).toHaveLength(1);
  expect([await ids({}, aCaller()), await ids({ teamUid: newUid() }), await ids({ teamUid })]).toEqual([
    [],
    [],
    [["one", "acme/shop:skills/one/SKILL.md"]],
  ]);
  const viewer = aCaller({ teams: [{ teamUid, verbs: ["run.view"] }] });
  expect(await ids({}, viewer)).toHaveLength(1);
});
