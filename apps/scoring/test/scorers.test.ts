import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError } from "@millwright/testing";
import {
  A_SCORER,
  LABELS,
  NOW,
  OTHER_TEAM,
  OWNER,
  SERVICE_ACCOUNT,
  startWorld,
  STRANGER,
  TEAM,
  VIEWER,
  type ScorerInit,
  type World,
} from "./setup.ts";

let w: World;
beforeAll(async () => {
  w = await startWorld();
});
beforeEach(() => w.reset());
afterAll(() => w?.stop());

const as = call(OWNER);
const create = (scorer: ScorerInit, caller = OWNER, idempotencyKey = "") =>
  w.scorers.createScorer({ scorer: { ...A_SCORER, ...scorer }, idempotencyKey }, call(caller));
const update = (scorer: ScorerInit, paths: string[], caller = OWNER) =>
  w.scorers.updateScorer({ scorer, updateMask: { paths } }, call(caller));
const list = async (factoryUid: string) => (await w.scorers.listScorers({ factoryUid }, as)).scorers;
const RULE = { checks: [{ kind: "state", in: ["SUCCEEDED"] }], pass: "good", fail: "bad" };

describe("creating a scorer", () => {
  test("returns an active scorer of version 1 and starts no scoring", async () => {
    const factoryUid = w.aFactory();
    const agentUid = w.anAgent(factoryUid);
    const settings = {
      name: "  Style ",
      description: "d",
      scopeMode: "selected_agents",
      agents: [{ agentUid: agentUid.toUpperCase(), includeDescendants: true }],
      samplingRate: 12.345,
    };
    const { scorer } = await create({ factoryUid, ...settings });
    expect(scorer).toMatchObject({
      name: "Style",
      factoryUid,
      teamUid: TEAM,
      scorerKind: "user",
      scopeMode: "selected_agents",
      agents: [{ agentUid, includeDescendants: true }],
      threshold: 0.5,
      modelId: "judge-large",
      samplingRate: 12.35,
      selfImprovementEnabled: false,
      version: 1,
    });
    expect(scorer!.allowedClassifications).toMatchObject(LABELS);
    expect(timestampDate(scorer!.createdAt!)).toEqual(NOW);
    expect(Number(scorer!.id)).toBeGreaterThan(0);
    expect((await list(factoryUid))[0]).toMatchObject({
      uid: scorer!.uid,
      id: scorer!.id,
      allowedClassifications: LABELS,
    });
    expect(await w.eventTypes()).toEqual(["scorer.created"]);
    expect(await w.rows("SELECT 1 FROM attempts")).toEqual([]);
  });

  test("sampling default: 100 in the API, unlike in files", async () => {
    expect(await w.aScorer()).toMatchObject({ samplingRate: 100 });
    expect(await w.aScorer({ samplingRate: 0 })).toMatchObject({ samplingRate: 0 });
  });

  test.each<[string, ScorerInit, string]>([
    ["no name", { name: " " }, "name"],
    ["a name of 201 characters", { name: "n".repeat(201) }, "name"],
    ["a long description", { description: "d".repeat(2_001) }, "description"],
    ["no prompt", { scoringPrompt: "" }, "scoring_prompt"],
    ["a prompt of more than 64 KiB", { scoringPrompt: "ä".repeat(32_769) }, "scoring_prompt"],
    ["an unknown scope mode", { scopeMode: "some_agents" }, "scope_mode"],
    ["selected agents without agents", { scopeMode: "selected_agents" }, "agents"],
    ["all agents with agents", { agents: [{ agentUid: newUid() }] }, "agents"],
    ["an agent that is no UUID", { scopeMode: "selected_agents", agents: [{ agentUid: "a" }] }, "agents"],
    [
      "an agent twice",
      {
        scopeMode: "selected_agents",
        agents: ["A", "a"].map((digit) => ({ agentUid: `0199a000-0000-7000-8000-00000000000${digit}` })),
      },
      "agents",
    ],
    ["one label", { allowedClassifications: LABELS.slice(0, 1) }, "allowed_classifications"],
    [
      "the same label twice",
      { allowedClassifications: [LABELS[0]!, LABELS[2]!, LABELS[0]!] },
      "allowed_classifications",
    ],
    [
      "a label with a score above 1",
      {
        allowedClassifications: [
          { value: "a", score: 1.1 },
          { value: "b", score: 0 },
        ],
      },
      "allowed_classifications",
    ],
    [
      "a label with a score that is no number",
      {
        allowedClassifications: [
          { value: "a", score: Number.NaN },
          { value: "b", score: 0 },
        ],
      },
      "allowed_classifications",
    ],
    [
      "a blank label",
      {
        allowedClassifications: [
          { value: "", score: 1 },
          { value: "b", score: 0 },
        ],
      },
      "allowed_classifications",
    ],
    [
      "a label with a space at its end",
      {
        allowedClassifications: [
          { value: "a ", score: 1 },
          { value: "b", score: 0 },
        ],
      },
      "allowed_classifications",
    ],
    ["no label that passes", { threshold: 1, allowedClassifications: LABELS.slice(1) }, "allowed_classifications"],
    ["no label that fails", { threshold: 0 }, "allowed_classifications"],
    ["a threshold above 1", { threshold: 1.5 }, "threshold"],
    ["a rate above 100", { samplingRate: 100.001 }, "sampling_rate"],
    ["a negative rate", { samplingRate: -1 }, "sampling_rate"],
    ["no model", { modelId: "" }, "model_id"],
    ["a rule and a model", { rule: RULE }, "model_id"],
    ["the model of rules without a rule", { modelId: "rule" }, "model_id"],
    ["a rule with an unknown label", { modelId: "rule", rule: { ...RULE, pass: "great" } }, "rule"],
    ["a runner that is no UUID", { agentConfig: { default_runner_uid: "big" } }, "agent_config"],
  ])("with %s is refused and names the member", async (_what, settings, field) => {
    await expect(w.aScorer(settings)).rejects.toEqual(
      expect.objectContaining({
        kind: "invalid_argument",
        reason: "scorer_invalid",
        metadata: expect.objectContaining({ field }),
      }),
    );
    expect(await w.rows("SELECT 1 FROM scorers")).toEqual([]);
  });

  test("refuses NUL, unknown models, and agents that are absent, disabled or of another factory", async () => {
    const [factoryUid, other] = [w.aFactory(), w.aFactory()];
    const foreign = w.anAgent(other);
    const disabled = w.identity.anAgent({ teamUid: TEAM, factoryUid, enabled: false }).uid;
    const stranger = w.identity.anAgent({ teamUid: OTHER_TEAM, factoryUid }).uid;
    await expect(create({ factoryUid, name: "a\0" })).rejects.toEqual(domainError({ reason: "invalid_text" }));
    await expect(create({ factoryUid, modelId: "gpt-0" })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "model_unknown" }),
    );
    for (const agentUid of [newUid(), foreign, disabled, stranger]) {
      await expect(create({ factoryUid, scopeMode: "selected_agents", agents: [{ agentUid }] })).rejects.toEqual(
        domainError({ kind: "not_found", reason: "agent_not_found" }),
      );
    }
  });

  test("accepts a score of 0 as the only passing distance and a label that equals the threshold", async () => {
    const scorer = await w.aScorer({ threshold: 0.4 });
    expect(scorer).toMatchObject({ threshold: 0.4 });
  });

  test("with a rule needs no rubric and returns the rule as it was given", async () => {
    const rule = {
      checks: [{ kind: "command", command: "npm test", exit_code: 0, timeout_seconds: 60 }],
      pass: "good",
      fail: "bad",
    };
    const scorer = await w.aScorer({ modelId: "rule", scoringPrompt: "", rule });
    expect(scorer.rule).toEqual(rule);
    expect((await list(scorer.factoryUid))[0]!.rule).toEqual(rule);
  });

  test("returns the same scorer for the same Idempotency-Key and refuses another body", async () => {
    const factoryUid = w.aFactory();
    const first = await create({ factoryUid }, OWNER, "key");
    expect(await create({ factoryUid }, OWNER, "key")).toEqual(first);
    await expect(create({ factoryUid, name: "Other" }, OWNER, "key")).rejects.toEqual(
      domainError({ kind: "conflict", reason: "idempotency_mismatch" }),
    );
    expect(await list(factoryUid)).toHaveLength(1);
    expect(await w.eventTypes()).toEqual(["scorer.created"]);
    w.factories.factories.get(factoryUid)!.management = "external_files";
    expect(await create({ factoryUid }, OWNER, "key")).toEqual(first);
  });

  test("names are unique in a factory whatever their case, also under concurrency", async () => {
    const factoryUid = w.aFactory();
    const outcomes = await Promise.allSettled(["Style", "STYLE", "style"].map((name) => create({ factoryUid, name })));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const [refused] = outcomes.filter(({ status }) => status === "rejected");
    expect(refused).toMatchObject({ reason: { kind: "conflict", reason: "scorer_name_taken" } });
    await create({ factoryUid: w.aFactory() });
  });

  test("needs the right to manage the factory; others do not learn that it exists", async () => {
    const factoryUid = w.aFactory();
    await expect(create({ factoryUid }, VIEWER)).rejects.toEqual(
      domainError({ kind: "permission_denied", reason: "not_authorized" }),
    );
    const absent = await create({ factoryUid: newUid() }).catch((error: unknown) => error);
    await expect(create({ factoryUid }, STRANGER)).rejects.toEqual(absent);
    await expect(create({ factoryUid: "x" })).rejects.toEqual(absent);
    expect(absent).toMatchObject({ reason: "factory_not_found" });
  });

  test("is refused where files outside the platform define the factory", async () => {
    await expect(create({ factoryUid: w.aFactory({ management: "external_files" }) })).rejects.toEqual(
      domainError({ kind: "conflict", reason: "managed_by_files" }),
    );
  });
});

describe("listing scorers", () => {
  test("orders by name without case, names the agents, and hides managed scorers unless asked", async () => {
    const factoryUid = w.aFactory();
    const agentUid = w.anAgent(factoryUid, "builder");
    await create({ factoryUid, name: "beta", scopeMode: "selected_agents", agents: [{ agentUid }] });
    await create({ factoryUid, name: "Alpha" });
    await create({ factoryUid, name: "Correct" });
    await w.rows("UPDATE scorers SET kind = 'benchmark_task_correctness' WHERE name = 'Correct'");
    expect((await list(factoryUid)).map(({ name }) => name)).toEqual(["Alpha", "beta"]);
    expect((await list(factoryUid))[1]!.agents).toMatchObject([{ agentUid, name: "builder" }]);
    expect(
      (await w.scorers.listScorers({ factoryUid, includeManaged: true }, as)).scorers.map(({ name }) => name),
    ).toEqual(["Alpha", "beta", "Correct"]);
    expect((await w.scorers.listScorers({ factoryUid }, call(VIEWER))).scorers).toHaveLength(2);
    await expect(w.scorers.listScorers({ factoryUid }, call(STRANGER))).rejects.toEqual(
      domainError({ kind: "not_found", reason: "factory_not_found" }),
    );
  });
});

describe("updating a scorer", () => {
  test("changes the named members only, raises the version and lists them in the event", async () => {
    const { uid, factoryUid } = await w.aScorer({ description: "d" });
    w.clock.advance(1_000);
    const { scorer } = await update({ uid, factoryUid, name: "New", description: "ignored", samplingRate: 10 }, [
      "name",
      "sampling_rate",
    ]);
    expect(scorer).toMatchObject({
      uid,
      name: "New",
      description: "d",
      samplingRate: 10,
      version: 2,
      modelId: "judge-large",
    });
    expect(timestampDate(scorer!.updatedAt!).getTime()).toBe(NOW.getTime() + 1_000);
    expect((await update({ uid, factoryUid }, ["sampling_rate"])).scorer).toMatchObject({
      samplingRate: 100,
      version: 3,
    });
    const events = await w.rows<{ payload: unknown }>(
      "SELECT payload FROM stream.event_pending WHERE type LIKE '%updated%' ORDER BY seq",
    );
    expect(events.map(({ payload }) => payload)).toEqual([
      {
        scorer_uid: uid,
        factory_uid: factoryUid,
        name: "New",
        scorer_kind: "user",
        changed: ["name", "sampling_rate"],
      },
      { scorer_uid: uid, factory_uid: factoryUid, name: "New", scorer_kind: "user", changed: ["sampling_rate"] },
    ]);
  });

  test("replaces the whole scope when the mode or the agents are named; agents alone retain the mode", async () => {
    const factoryUid = w.aFactory();
    const [a, b] = [w.anAgent(factoryUid), w.anAgent(factoryUid)];
    const { uid } = await w.aScorer({
      factoryUid,
      scopeMode: "selected_agents",
      agents: [{ agentUid: a, includeDescendants: true }],
    });
    expect((await update({ uid, factoryUid, agents: [{ agentUid: b }] }, ["agents"])).scorer).toMatchObject({
      scopeMode: "selected_agents",
      agents: [{ agentUid: b, includeDescendants: false }],
    });
    await expect(update({ uid, factoryUid }, ["agents"])).rejects.toEqual(domainError({ reason: "scorer_invalid" }));
    await expect(update({ uid, factoryUid, scopeMode: "selected_agents" }, ["scope_mode"])).rejects.toEqual(
      domainError({ reason: "scorer_invalid" }),
    );
    expect((await update({ uid, factoryUid, scopeMode: "all_agents" }, ["scope_mode"])).scorer).toMatchObject({
      scopeMode: "all_agents",
      agents: [],
    });
    await expect(update({ uid, factoryUid, agents: [{ agentUid: a }] }, ["agents"])).rejects.toEqual(
      domainError({ reason: "scorer_invalid" }),
    );
  });

  test("does not check again what the scorer named before", async () => {
    const factoryUid = w.aFactory();
    const agentUid = w.anAgent(factoryUid);
    const { uid } = await w.aScorer({ factoryUid, scopeMode: "selected_agents", agents: [{ agentUid }] });
    w.identity.agents.delete(agentUid);
    expect((await update({ uid, factoryUid, name: "Kept" }, ["name"])).scorer).toMatchObject({ name: "Kept" });
  });

  test("switches between a model and a rule only if the model id changes too", async () => {
    const { uid, factoryUid } = await w.aScorer();
    await expect(update({ uid, factoryUid, rule: RULE }, ["rule"])).rejects.toEqual(
      domainError({ reason: "scorer_invalid" }),
    );
    expect((await update({ uid, factoryUid, rule: RULE, modelId: "rule" }, ["rule", "model_id"])).scorer).toMatchObject(
      { modelId: "rule", rule: RULE },
    );
    const { scorer } = await update({ uid, factoryUid, modelId: "judge-small" }, ["rule", "model_id"]);
    expect(scorer!.rule).toBeUndefined();
  });

  test("needs a member to change, of a scorer of this factory, by a name that is free", async () => {
    const { uid, factoryUid } = await w.aScorer();
    await w.aScorer({ factoryUid, name: "Taken" });
    await expect(update({ uid, factoryUid }, [])).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "update_empty" }),
    );
    await expect(update({ uid, factoryUid }, ["factory_uid"])).rejects.toEqual(
      domainError({ reason: "scorer_invalid" }),
    );
    await expect(update({ uid, factoryUid, name: "TAKEN" }, ["name"])).rejects.toEqual(
      domainError({ kind: "conflict", reason: "scorer_name_taken" }),
    );
    const absent = await update({ uid: newUid(), factoryUid, name: "x" }, ["name"]).catch((error: unknown) => error);
    expect(absent).toMatchObject({ kind: "not_found", reason: "scorer_not_found" });
    await expect(update({ uid, factoryUid: w.aFactory(), name: "x" }, ["name"])).rejects.toEqual(absent);
    await expect(update({ uid, factoryUid, name: "x" }, ["name"], VIEWER)).rejects.toEqual(
      domainError({ reason: "not_authorized" }),
    );
    await expect(update({ uid, factoryUid, name: "x" }, ["name"], STRANGER)).rejects.toEqual(
      domainError({ kind: "not_found", reason: "factory_not_found" }),
    );
  });

  test("loses none of two concurrent updates", async () => {
    const { uid, factoryUid } = await w.aScorer();
    await Promise.all([
      update({ uid, factoryUid, name: "N" }, ["name"]),
      update({ uid, factoryUid, description: "D" }, ["description"]),
    ]);
    expect((await list(factoryUid))[0]).toMatchObject({ name: "N", description: "D", version: 3 });
  });
});

describe("a managed scorer", () => {
  test("can be neither changed nor deleted", async () => {
    const { uid, factoryUid } = await w.aScorer();
    await w.rows("UPDATE scorers SET kind = 'benchmark_task_correctness'");
    const refused = domainError({ kind: "conflict", reason: "scorer_managed" });
    await expect(update({ uid, factoryUid, name: "x" }, ["name"])).rejects.toEqual(refused);
    await expect(w.scorers.deleteScorer({ factoryUid, scorerUid: uid }, as)).rejects.toEqual(refused);
    await expect(w.scorers.putSelfImprovement({ factoryUid, selfImprovement: { scorerUid: uid } }, as)).rejects.toEqual(
      refused,
    );
  });
});

describe("self-improvement", () => {
  const ref = async () => {
    const { uid, factoryUid } = await w.aScorer();
    return { scorerUid: uid, factoryUid };
  };

  test("is created with its defaults in the same transaction as the scorer", async () => {
    const { uid, factoryUid } = await w.aScorer({ selfImprovementEnabled: true });
    const { selfImprovement } = await w.scorers.getSelfImprovement({ factoryUid, scorerUid: uid }, call(VIEWER));
    expect(selfImprovement).toMatchObject({
      scorerUid: uid,
      failureThreshold: 25,
      failureAgeDays: 7,
      runsPerWeek: 5,
      costLimitMicros: 5_000_000n,
      unreviewedFailures: 0,
      lastRunUid: "",
    });
  });

  test("is turned on by people only", async () => {
    const { scorerUid: uid, factoryUid } = await ref();
    const refused = domainError({ kind: "permission_denied", reason: "human_required" });
    await expect(create({ factoryUid, name: "Other", selfImprovementEnabled: true }, SERVICE_ACCOUNT)).rejects.toEqual(
      refused,
    );
    await expect(
      update({ uid, factoryUid, selfImprovementEnabled: true }, ["self_improvement_enabled"], SERVICE_ACCOUNT),
    ).rejects.toEqual(refused);
    await expect(
      w.scorers.putSelfImprovement({ factoryUid, selfImprovement: { scorerUid: uid } }, call(SERVICE_ACCOUNT)),
    ).rejects.toEqual(refused);
    expect(await w.rows("SELECT 1 FROM self_improvements")).toEqual([]);
    expect((await create({ factoryUid, name: "Other" }, SERVICE_ACCOUNT)).scorer).toMatchObject({ name: "Other" });
  });

  test("is put, replaced and deleted; deleting again changes nothing", async () => {
    const target = await ref();
    const put = (settings: object) =>
      w.scorers.putSelfImprovement(
        { factoryUid: target.factoryUid, selfImprovement: { scorerUid: target.scorerUid, ...settings } },
        as,
      );
    await expect(w.scorers.getSelfImprovement(target, as)).rejects.toEqual(
      domainError({ kind: "not_found", reason: "self_improvement_not_found" }),
    );
    expect((await put({ failureThreshold: 3 })).selfImprovement).toMatchObject({
      failureThreshold: 3,
      failureAgeDays: 7,
    });
    expect((await list(target.factoryUid))[0]).toMatchObject({ selfImprovementEnabled: true, version: 2 });
    expect((await put({ runsPerWeek: 1, costLimitMicros: 10n })).selfImprovement).toMatchObject({
      failureThreshold: 25,
      runsPerWeek: 1,
      costLimitMicros: 10n,
    });
    expect((await list(target.factoryUid))[0]).toMatchObject({ version: 2 });
    await w.scorers.deleteSelfImprovement(target, as);
    await w.scorers.deleteSelfImprovement(target, as);
    expect((await list(target.factoryUid))[0]).toMatchObject({ selfImprovementEnabled: false, version: 3 });
    expect(await w.rows("SELECT 1 FROM self_improvements")).toEqual([]);
    for (const bad of [
      { failureThreshold: 1_001 },
      { failureAgeDays: 91 },
      { runsPerWeek: 51 },
      { costLimitMicros: -1n },
    ]) {
      await expect(put(bad)).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "scorer_invalid" }));
    }
    await expect(
      w.scorers.putSelfImprovement(
        { factoryUid: target.factoryUid, selfImprovement: { scorerUid: target.scorerUid } },
        call(VIEWER),
      ),
    ).rejects.toEqual(domainError({ reason: "not_authorized" }));
  });

  test("turning it off by an update deletes its configuration", async () => {
    const { uid, factoryUid } = await w.aScorer({ selfImprovementEnabled: true });
    await update({ uid, factoryUid, selfImprovementEnabled: false }, ["self_improvement_enabled"], SERVICE_ACCOUNT);
    await expect(w.scorers.getSelfImprovement({ factoryUid, scorerUid: uid }, as)).rejects.toEqual(
      domainError({ reason: "self_improvement_not_found" }),
    );
  });
});
