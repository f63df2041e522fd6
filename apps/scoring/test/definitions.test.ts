import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { JsonObject } from "@bufbuild/protobuf";
import { serviceCaller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError, eventually } from "@millwright/testing";
import { OWNER, startWorld, TEAM, type World } from "./setup.ts";

let w: World;
let factoryUid: string;
beforeAll(async () => {
  w = await startWorld();
});
beforeEach(async () => {
  await w.reset();
  factoryUid = w.aFactory({ management: "service_files" });
});
afterAll(() => w?.stop());

const as = call(OWNER);
const asFactories = call(serviceCaller("factories", "r-1", { type: "user", uid: "applier" }));
const part = (slug: string, more: JsonObject = {}): JsonObject => ({
  slug, name: slug, agents: "*", labels: [{ value: "good", score: 1 }, { value: "bad", score: 0 }], passing_score: 0.5, sampling_rate: 25, model: "judge-large",
  self_improvement: false, enabled: true, prompt: "Is it good?", ...more,
});
const stage = (version: number, scorers: JsonObject[], dryRun = false) =>
  w.definitionOwner.stageDefinition({ factoryUid, teamUid: TEAM, version: BigInt(version), definition: { scorers }, dryRun }, asFactories);
const activate = async (version: number) => Number((await w.definitionOwner.activateDefinition({ factoryUid, version: BigInt(version) }, asFactories)).activeVersion);
const list = async () => (await w.scorers.listScorers({ factoryUid }, as)).scorers;
const apply = async (version: number, scorers: JsonObject[]) => {
  expect((await stage(version, scorers)).diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  expect(await activate(version)).toBe(version);
  return list();
};
const aScore = (scorerUid: string, state = "scored", judgeRunUid: string | null = null) =>
  w.rows(
    `INSERT INTO attempts (uid, scorer_uid, run_uid, factory_uid, team_uid, trigger_source, requester_type, requester_uid, state, is_current, config, run_version, classification, score,
                           scored_at, judge_run_uid, attempted_at)
     VALUES ($1, $2, $3, $4, $5, 'automatic', 'user', 'u', $6, true, '{}', 1, CASE $6 WHEN 'scored' THEN 'good' END, CASE $6 WHEN 'scored' THEN 1.0 END, CASE $6 WHEN 'scored' THEN now() END, $7, now())`,
    [newUid(), scorerUid, newUid(), factoryUid, TEAM, state, judgeRunUid],
  );

describe("scorers of a definition", () => {
  test("are inert until their version is activated; the rate of a file is its own, 25 by default of the parser", async () => {
    const agentUid = w.anAgent(factoryUid, "builder");
    await stage(1, [part("style", { name: "Style", description: "d", agents: ["builder"] })]);
    expect(await list()).toEqual([]);
    await activate(1);
    expect(await list()).toMatchObject([
      { name: "Style", description: "d", teamUid: TEAM, scopeMode: "selected_agents", agents: [{ agentUid, includeDescendants: false, name: "builder" }], samplingRate: 25, threshold: 0.5, modelId: "judge-large", version: 1 },
    ]);
    expect(await w.rows("SELECT type, actor_uid FROM stream.event_pending")).toEqual([{ type: "millwright.scorer.created.v1", actor_uid: "applier" }]);
  });

  test("are the same as long as their directory is there, whatever their name; unchanged ones have no new version", async () => {
    const [first] = await apply(1, [part("style"), part("speed")].slice(0, 1));
    const both = await apply(2, [part("style"), part("speed", { enabled: false })]);
    expect(both.find(({ uid }) => uid === first!.uid)).toMatchObject({ version: 1 });
    const renamed = await apply(3, [part("style", { name: "speed" }), part("speed", { name: "style" })]);
    expect(renamed.map(({ uid, name, version }) => [uid === first!.uid, name, version])).toEqual([[true, "speed", 2], [false, "style", 2]]);
    expect(await w.rows("SELECT enabled FROM scorers WHERE slug = 'speed'")).toEqual([{ enabled: true }]);
  });

  test("without their file are deleted as by DELETE, with their results; plans say so before", async () => {
    const judge = w.orchestrator.aRun({ teamUid: TEAM, state: "INPROGRESS" });
    const [style] = await apply(1, [part("style")]);
    await aScore(style!.uid);
    await aScore(style!.uid, "judging", judge.uid);
    const planned = await stage(2, [part("other")], true);
    expect(planned.plan.map(({ kind, name, action }) => [kind, name, action])).toEqual([["scorer", "other", "create"], ["scorer", "style", "delete"]]);
    expect(planned.diagnostics).toMatchObject([{ path: "scorers/style/scorer.md", code: "FF_MISSING_FILE", severity: "warning", message: expect.stringContaining("2 runs") }]);
    expect(await list()).toHaveLength(1);
    expect((await apply(2, [])).map(({ name }) => name)).toEqual([]);
    for (const table of ["attempts", "self_improvements"]) expect(await w.rows(`SELECT 1 FROM ${table}`)).toEqual([]);
    w.service.work.start();
    await eventually(() => expect(w.orchestrator.cancelled).toEqual([judge.uid]));
    await w.service.work.stop();
    const [again] = await apply(3, [part("style")]);
    expect(again!.uid).not.toBe(style!.uid);
  });

  test("change through their files only; scorers of the API beside them are untouched", async () => {
    const live = await w.aScorer({ factoryUid, name: "Live" });
    await apply(1, [part("style")]);
    const { uid } = (await list()).find(({ name }) => name === "style")!;
    const refused = domainError({ kind: "conflict", reason: "managed_by_files" });
    await expect(w.scorers.updateScorer({ scorer: { uid, factoryUid, name: "x" }, updateMask: { paths: ["name"] } }, as)).rejects.toEqual(refused);
    await expect(w.scorers.deleteScorer({ factoryUid, scorerUid: uid }, as)).rejects.toEqual(refused);
    await expect(w.scorers.putSelfImprovement({ factoryUid, selfImprovement: { scorerUid: uid } }, as)).rejects.toEqual(refused);
    await apply(2, [part("style", { self_improvement: true })]);
    expect((await w.scorers.putSelfImprovement({ factoryUid, selfImprovement: { scorerUid: uid, failureThreshold: 3 } }, as)).selfImprovement).toMatchObject({ failureThreshold: 3 });
    await expect(w.scorers.deleteSelfImprovement({ factoryUid, scorerUid: uid }, as)).rejects.toEqual(refused);
    await apply(3, []);
    expect((await list()).map((scorer) => scorer.uid)).toEqual([live.uid]);
  });

  test("that are wrong are reported at their files, and nothing is staged", async () => {
    await w.aScorer({ factoryUid, name: "Taken" });
    const { diagnostics } = await stage(1, [
      part("model", { model: "gpt-0" }), part("labels", { passing_score: 0 }), part("first", { name: "Same" }), part("second", { name: "SAME" }), part("taken", { name: "taken" }),
      part("many", { agents: Array.from({ length: 101 }, (_, n) => `a${n}`) }),
    ]);
    expect(diagnostics.map(({ path, keys, code, severity }) => [path, keys, code, severity])).toEqual([
      ["scorers/model/scorer.md", ["model"], "FF_INVALID_REFERENCE", "error"],
      ["scorers/labels/scorer.md", ["labels"], "FF_INVALID_VALUE", "error"],
      ["scorers/many/scorer.md", ["agents"], "FF_LIMIT_EXCEEDED", "error"],
      ["scorers/second/scorer.md", ["name"], "FF_DUPLICATE_NAME", "error"],
      ["scorers/taken/scorer.md", ["name"], "FF_DUPLICATE_NAME", "error"],
    ]);
    expect(await w.rows("SELECT 1 FROM definition_stages")).toEqual([]);
    await stage(1, [part("fine")], true);
    expect(await w.rows("SELECT 1 FROM definition_stages")).toEqual([]);
    await expect(stage(1, [{ slug: "x" }])).rejects.toEqual(domainError({ reason: "definition_malformed" }));
  });

  test("are activated also when a scorer of the API took their name after the stage", async () => {
    await stage(1, [part("style", { name: "Style" })]);
    await w.aScorer({ factoryUid, name: "style" });
    await activate(1);
    expect((await list()).map(({ name }) => name)).toEqual(["style", "Style (style)"]);
  });

  test("leave out agents that are disabled when the version is activated", async () => {
    const agentUid = w.anAgent(factoryUid, "builder");
    w.identity.anAgent({ teamUid: TEAM, factoryUid, name: "resting", enabled: false });
    expect(await apply(1, [part("style", { agents: ["builder", "resting"] })])).toMatchObject([{ agents: [{ agentUid }] }]);
  });

  test("roll forward only; a missing stage is an error, and a dropped one is gone", async () => {
    await apply(2, [part("two")]);
    await stage(1, [part("one")]);
    expect(await activate(1)).toBe(2);
    await stage(3, [part("three")]);
    await w.definitionOwner.dropDefinition({ factoryUid, version: 3n }, asFactories);
    await expect(activate(3)).rejects.toEqual(domainError({ kind: "conflict", reason: "stage_missing", retryable: true }));
    expect((await list()).map(({ name }) => name)).toEqual(["two"]);
    await stage(4, [part("four")]);
    expect(await Promise.all([activate(4), activate(4)])).toEqual([4, 4]);
    expect((await list()).map(({ name }) => name)).toEqual(["four"]);
  });
});

test("a deleted factory takes its scorers, their results and its stages along", async () => {
  await apply(1, [part("style")]);
  await stage(2, [part("style")]);
  const [live, other] = [await w.aScorer({ factoryUid, name: "Live" }), await w.aScorer()];
  await aScore(live.uid);
  w.factories.feed.push({ type: "millwright.factory.deleted.v1", entityUid: factoryUid, teamUid: TEAM });
  for (const consumer of w.service.consumers) await consumer.drain();
  expect(await w.rows("SELECT uid FROM scorers")).toEqual([{ uid: other.uid }]);
  for (const table of ["attempts", "definition_stages", "definition_versions"]) expect(await w.rows(`SELECT 1 FROM ${table}`)).toEqual([]);
  expect((await w.eventTypes()).filter((type) => type === "scorer.deleted")).toHaveLength(2);
});
