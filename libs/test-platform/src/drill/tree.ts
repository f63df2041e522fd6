import { setTimeout as pause } from "node:timers/promises";
import { processesOfRuns } from "../processes.ts";
import { progressOf } from "./facts.ts";
import { Rig, SLOTS } from "./rig.ts";
import { CAST } from "./schedule.ts";

const SPAWNERS = 8;
const POLL_MS = 20;
const STALL_TIMEOUT_MS = 300_000;
const PROMPT =
  "```scripted\n- say: I am here.\n- shell: {command: setsid sleep 900 & sleep 900, timeout_seconds: 900}\n```";

export type TreeReport = {
  readonly runs: number;
  readonly depth: number;
  /** Executions that were running when the tree was cancelled. */
  readonly working: number;
  /** Child runs that were created while the tree was being cancelled. */
  readonly spawnedDuringCancel: number;
  readonly responseMs: number;
  /** Time from the cancel request until every run was terminal. */
  readonly terminalMs: number;
  /** Time from the cancel request until no lease and no process was left. */
  readonly goneMs: number;
};

/**
 * Cancels a tree of `size` runs while children are created in it, on a platform with unscaled times. Throws if a run, a
 * lease or a process is left after `STALL_TIMEOUT_MS`.
 */
export async function drillTree(size: number, depth: number): Promise<TreeReport> {
  const rig = await Rig.start({ stallTimeoutMs: STALL_TIMEOUT_MS, timeScale: 1 });
  try {
    const { root, parents } = await grow(rig, size, depth);
    const working = await busy(rig, root);
    const ended = new AbortController();
    let spawned = 0;
    const spawners = Array.from({ length: SPAWNERS }, async (_one, n) => {
      for (let k = n; !ended.signal.aborted; k += SPAWNERS + 1)
        if ((await spawn(rig, parents[k % parents.length]!)) !== undefined) spawned += 1;
    });
    const before = spawned;
    const began = performance.now();
    const { status, body } = await rig.client.send("POST", `/agent/runs/${root}/cancel?tree=true`);
    const responseMs = performance.now() - began;
    if (status !== 200) throw new Error(`The tree was not cancelled: ${status} ${JSON.stringify(body)}`);
    const terminalMs = await until(
      began,
      "a run is still active",
      async () => (await progressOf(rig.database.sql, [root])).active.length === 0,
    );
    ended.abort();
    await Promise.all(spawners);
    const { rows: runs } = await rig.database.sql.query<{ uid: string }>(
      "SELECT uid FROM runs WHERE root_run_uid = $1",
      [root],
    );
    const uids = runs.map(({ uid }) => uid);
    const goneMs = await until(
      began,
      "a lease or a process is left",
      async () => (await progressOf(rig.database.sql, [root])).leases === 0 && processesOfRuns(uids).length === 0,
    );
    const { rows } = await rig.database.sql.query<{ depth: number; strays: number }>(
      "SELECT max(depth)::int AS depth, count(*) FILTER (WHERE state <> 'CANCELLED')::int AS strays FROM runs WHERE root_run_uid = $1",
      [root],
    );
    const { depth: deepest, strays } = rows[0]!;
    if (strays > 0) throw new Error(`${strays} runs of the tree are not CANCELLED.`);
    return {
      runs: uids.length,
      depth: deepest,
      working,
      spawnedDuringCancel: spawned - before,
      responseMs,
      terminalMs,
      goneMs,
    };
  } finally {
    await rig.close();
  }
}

async function until(began: number, what: string, isSo: () => Promise<boolean>): Promise<number> {
  while (!(await isSo())) {
    if (performance.now() - began > STALL_TIMEOUT_MS) throw new Error(`After ${STALL_TIMEOUT_MS / 1_000} s ${what}.`);
    await pause(POLL_MS);
  }
  return performance.now() - began;
}

/** Returns the id of a child run; undefined if the parent has ended. */
async function spawn({ client }: Rig, parent: string): Promise<string | undefined> {
  const { status, body } = await client.send("POST", "/agent/runs", { prompt: PROMPT, parent_run_id: parent });
  if (status >= 300 && body?.reason !== "parent_run_invalid")
    throw new Error(`No child was created: ${status} ${JSON.stringify(body)}`);
  return body?.run_id as string | undefined;
}

/** Creates the tree level by level; distributes the runs of a level evenly over the runs of the level above. */
async function grow(rig: Rig, size: number, depth: number): Promise<{ root: string; parents: string[] }> {
  const { run_id: root } = await rig.client.request("POST", "/agent/runs", { prompt: PROMPT });
  const parents: string[] = [root];
  let above: string[] = [root];
  for (let level = 1, left = size - 1; level <= depth; level++) {
    const count = Math.ceil(left / (depth - level + 1));
    left -= count;
    const made: string[] = [];
    const wanted = Array.from({ length: count }, (_one, n) => above[n % above.length]!);
    await Promise.all(
      Array.from({ length: SPAWNERS }, async () => {
        for (let parent = wanted.shift(); parent; parent = wanted.shift()) made.push((await spawn(rig, parent))!);
      }),
    );
    if (level < depth) parents.push(...made);
    above = made;
  }
  return { root, parents };
}

/** Waits until every slot has a running execution. Returns the number of running executions. */
async function busy({ database }: Rig, root: string): Promise<number> {
  const count = async () =>
    (
      await database.sql.query<{ n: number }>(
        "SELECT count(*)::int AS n FROM runs WHERE root_run_uid = $1 AND state = 'INPROGRESS'",
        [root],
      )
    ).rows[0]!.n;
  const began = performance.now();
  await until(began, "no run of the tree is in progress", async () => (await count()) >= SLOTS * CAST.worker);
  return count();
}
