import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Caller } from "@millwright/caller";
import type { scoring } from "@millwright/contracts";
import { as, newUid, type RunUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import type { Rule } from "../src/domain/rule.ts";
import type { FakeRun } from "./fake-orchestrator.ts";
import { LABELS, NOW, OWNER, startWorld, TEAM } from "./setup.ts";

export type ScorerInit = {
  factoryUid?: string;
  teamUid?: string;
  name?: string;
  kind?: string;
  scopeMode?: string;
  agents?: { agent_uid: string; include_descendants: boolean }[];
  rule?: Rule;
  samplingRate?: number;
  enabled?: boolean;
  agentConfig?: object;
};

export type AttemptRow = {
  uid: string;
  scorer_uid: string;
  run_uid: string;
  state: string;
  is_current: boolean;
  classification: string | null;
  score: number | null;
  reason: string | null;
  failure_code: string | null;
  failure_message: string | null;
  judge_run_uid: string | null;
  trigger_source: string;
  run_version: number;
  cost_micros: number;
  judge_time_ms: number | null;
  judge_usage: object | null;
};

export const PASSING_RULE: Rule = { checks: [{ kind: "state", in: ["SUCCEEDED"] }], pass: "good", fail: "bad" };
export type JudgingWorld = Awaited<ReturnType<typeof startJudging>>;

/** Starts the world of setup.ts with a factory, an agent and shortcuts for scoring runs. */
export async function startJudging() {
  const world = await startWorld();
  const { orchestrator, rows, service, scorers } = world;
  const at = { factoryUid: "", agentUid: "" };

  return {
    ...world,
    at,

    /** Resets all state and creates a factory with an agent. */
    async begin(): Promise<void> {
      await world.reset();
      at.factoryUid = world.aFactory({ scorerDefaults: { secrets: ["TOKEN"], default_runner_uid: "runner-1" } });
      at.agentUid = world.anAgent(at.factoryUid);
    },

    /** Inserts a scorer with a model judge that scores 100 % of the runs of all agents. */
    async scorer(init: ScorerInit = {}): Promise<string> {
      const uid = newUid();
      await rows(
        `INSERT INTO scorers (uid, factory_uid, team_uid, name, kind, scope_mode, agents, labels, threshold, scoring_prompt, model_id, rule, sampling_rate, agent_config,
                              enabled, creator_type, creator_uid, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb, $8::jsonb, 0.5, 'Is the style good?', $9, $10::jsonb, $11, $12::jsonb, $13, 'user', $14, $15, $15)`,
        [
          uid,
          init.factoryUid ?? at.factoryUid,
          init.teamUid ?? TEAM,
          init.name ?? `Scorer ${uid}`,
          init.kind ?? "user",
          init.scopeMode ?? "all_agents",
          JSON.stringify(init.agents ?? []),
          JSON.stringify(LABELS),
          init.rule ? "rule" : "judge-large",
          init.rule ? JSON.stringify(init.rule) : null,
          init.samplingRate ?? 100,
          init.agentConfig ? JSON.stringify(init.agentConfig) : null,
          init.enabled ?? true,
          OWNER.principal.uid,
          NOW,
        ],
      );
      return uid;
    },

    /** Adds a succeeded run of the agent. */
    run: (described: Omit<Parameters<typeof orchestrator.aRun>[0], "teamUid"> = {}): FakeRun =>
      orchestrator.aRun({ teamUid: TEAM, factoryUid: at.factoryUid, agentUid: at.agentUid, ...described }),

    /** Processes all events and all work that is due. */
    async settle(): Promise<void> {
      for (const consumer of service.consumers) await consumer.drain();
      await service.work.drain();
    },

    dispatch: (scorerUids: string[], runUids: string[], caller: Caller = OWNER) =>
      scorers.dispatchScoring({ factoryUid: at.factoryUid, scorerUids, runUids }, call(caller)),

    /** Dispatches one pair and creates its judge run. */
    async judging(scorerUid: string, run: FakeRun): Promise<FakeRun> {
      await scorers.dispatchScoring(
        { factoryUid: at.factoryUid, scorerUids: [scorerUid], runUids: [run.uid] },
        call(OWNER),
      );
      await service.work.drain();
      return [...orchestrator.runs.values()].findLast(({ causeKey }) => causeKey?.startsWith("attempt:"))!;
    },

    /** Reports verdicts as the judge run. */
    report: (
      judgeRunUid: string,
      verdicts: MessageInitShape<typeof scoring.VerdictSchema>[],
      caller: Caller = judgeCaller(judgeRunUid),
    ) => scorers.reportScores({ runUid: judgeRunUid, verdicts }, call(caller)),

    /** Returns all attempts, oldest first. */
    attempts: (): Promise<AttemptRow[]> => rows<AttemptRow>("SELECT * FROM attempts ORDER BY attempted_at, uid"),
  };
}

/** Returns the caller of a judge run's token. */
export const judgeCaller = (runUid: string): Caller => ({
  ...OWNER,
  principal: { type: "agent", uid: newUid() },
  run: { runUid: as<RunUid>(runUid), rootRunUid: as<RunUid>(runUid), executionId: "1", attempt: 1 },
});
