import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import type { ApiClient } from "@millwright/api-client";
import { openHistoryImport, type RunSnapshot } from "@millwright/metrics/compose";
import { openRunImport, type ImportedRun } from "@millwright/orchestrator/compose";
import { prepareFactory } from "../journey.ts";
import { runDemo } from "../run-demo.ts";
import { simulateMonth, type Team } from "./month.ts";

const PEOPLE = 50;
const COMMAND_LINE = fileURLToPath(new URL("../../../../cli/bin/millwright.mjs", import.meta.url));

const OPTIONS = {
  /** Exits after the tables, even on a terminal. */
  exit: { type: "boolean", default: false },
  /** Runs until a signal arrives and preserves the data directory. */
  keep: { type: "boolean", default: false },
  /** Seed of the simulated month. */
  seed: { type: "string", default: "1" },
} as const;
const { values: options } = parseArgs({ options: OPTIONS });
const settings = { MILLWRIGHT_SANDBOX: "optional" }; // no run is executed, so no sandbox is needed
const demo = {
  ...options,
  model: "scripted",
  definition: "first-factory",
  settings,
  env: process.env,
  hint: "npx millwright factory list",
};

await runDemo(demo, async ({ api, world, databaseUrl, print, heading, url, apiKey }) => {
  heading("2  A team of 50 gets a factory");
  const { factoryUid } = await prepareFactory(api, world);
  const { name } = await api.get<{ name: string }>(`/factory/${factoryUid}`);
  const team = await createTeam(api, factoryUid);
  print(`   ${team.userUids.length} people, the agents ${team.foreman.name} and ${team.implementer.name}`);

  heading("3  A month of its work is simulated and stored");
  const { runs, pullRequests } = simulateMonth(team, Number(options.seed), new Date());
  const imported = openRunImport(databaseUrl("orchestrator"));
  const history = openHistoryImport(databaseUrl("metrics"));
  try {
    await imported.storeRuns(runs.map(toImportedRun)); // so that the console's links to them open
    await history.storeRuns(runs);
    await history.storePullRequests(team.teamUid, pullRequests);
  } finally {
    await Promise.all([imported.close(), history.close()]);
  }
  print(
    `   seed ${options.seed}: ${runs.length} runs, ${runs.flatMap(({ modelCalls }) => modelCalls).length} model calls, ${pullRequests.length} pull requests`,
  );

  heading("4  What it did, and what that cost");
  for (const words of [
    ["metrics", name],
    ["costs", name],
    ["costs", name, "--by", "model"],
    ["costs", name, "--by-size"],
    ["pr", "list", name, "--limit", "5"],
  ]) {
    print(`\n$ millwright ${words.map((word) => (word.includes(" ") ? `"${word}"` : word)).join(" ")}`);
    const env = { ...process.env, MILLWRIGHT_URL: url, MILLWRIGHT_API_KEY: apiKey };
    const { stdout } = await promisify(execFile)(process.execPath, [COMMAND_LINE, ...words], { env });
    print(stdout.trimEnd());
  }
  return ["the costs", `/costs?factory=${factoryUid}`];
});
process.exit(0); // a keep-alive connection of the client would keep the process running

function toImportedRun(run: RunSnapshot): ImportedRun {
  const { uid, teamUid, parentRunUid, conversationUid, costOwner, createdAt, finishedAt, source, state } = run;
  return {
    ...{ uid, rootUid: costOwner.rootRunUid, parentUid: parentRunUid, conversationUid },
    ...{ teamUid, factoryUid: costOwner.factoryUid, userUid: costOwner.creatorUid },
    ...{ agentUid: costOwner.agentUid, agentName: run.agentName, modelId: costOwner.modelId },
    state: state === "SUCCEEDED" ? state : "FAILED",
    ...{ source, createdAt, finishedAt: finishedAt! },
    title: `Simulated work of ${run.agentName}`,
    prompt: "This run is simulated. No agent has worked on it.",
  };
}

type Agents = { agents: { uid: string; name: string }[] };
type Teams = { teams: { uid: string }[] };

async function createTeam(api: ApiClient, factoryUid: string): Promise<Team> {
  const { teams } = await api.get<Teams>("/whoami");
  const teamUid = teams[0]!.uid;
  const userUids: string[] = [];
  for (let n = 1; n <= PEOPLE; n++) {
    const member = await api.post<{ uid: string }>(`/team/${teamUid}/members`, {
      email: `person-${n}@example.com`,
      role: "member",
    });
    userUids.push(member.uid);
  }
  const { agents } = await api.get<Agents>("/agent/identities", { factory_uid: factoryUid });
  const agent = (name: string) => agents.find((each) => each.name === name)!;
  return { teamUid, factoryUid, userUids, foreman: agent("foreman"), implementer: agent("implementer") };
}
