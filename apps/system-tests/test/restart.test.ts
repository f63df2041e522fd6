import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { type Deployment, processesWith } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { ended, eventsOf, script, waitForEvent, spawn, succeeded } from "./support/runs.ts";
import { aFactory, definitionFiles } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let factory: string;

beforeAll(async () => {
  platform = await startPlatform({ workers: 1, slots: 4, timeScale: 15 });
  api = await connect(platform);
  factory = await aFactory(api, definitionFiles("No script here."));
});
afterAll(() => platform?.remove());

const dispatch = (prompt: string, key?: string) =>
  api.call("POST", `/factory/${factory}/runs`, {
    body: { prompt },
    headers: key ? { "idempotency-key": key } : undefined,
  });
const tasks = async (): Promise<any[]> => {
  const found: any[] = [];
  for (let cursor = ""; ;) {
    const page = await api.get(`/factory/${factory}/tasks?limit=100${cursor}`);
    found.push(...page.tasks);
    if (!page.page_info.has_next_page) return found;
    cursor = `&cursor=${page.page_info.next_cursor}`;
  }
};

test("a run tree that is killed with the platform resumes after the restart; nothing happens twice", async () => {
  const child = script(
    "say: once",
    "write: {path: c.txt, content: c}",
    "artifact: c.txt",
    "shell: sleep 2",
    "say: twice",
  );
  const { body } = await dispatch(
    script(
      "write: {path: a.txt, content: a}",
      "artifact: a.txt",
      spawn(child, "helper"),
      "wait: all",
      "stage: REVIEW",
      "say: all done",
    ),
  );
  const root: string = body.run_id;
  const before = await waitForEvent(api, root, ({ kind }) => kind === "run_waiting");
  const childRun = (await api.get(`/agent/runs?ancestor_run_id=${root}`)).runs[0].run_id;
  await waitForEvent(api, childRun, ({ kind, payload }) => kind === "tool_start" && payload.name === "run_command");
  await platform.killEverything();
  // Standalone starts the build of the console beside itself; it executes nothing of a run and ends on its own.
  const isConsoleBuild = ({ command }: { command: string }) => /console-client\.mjs|console\/build\.mjs/.test(command);
  expect(processesWith(platform.dir).filter((process) => !isConsoleBuild(process))).toEqual([]);
  await platform.start();

  const run = await ended(api, root);
  expect(run.state === "SUCCEEDED" || run.status_message.error_code !== undefined).toBe(true);
  const runs: any[] = (await api.get(`/agent/runs?ancestor_run_id=${root}`)).runs;
  expect(runs.map(({ run_id: id, state }) => [id, ["SUCCEEDED", "ERROR", "FAILED"].includes(state)])).toEqual([
    [childRun, true],
  ]);
  const artifacts = [...run.artifacts, ...runs[0].artifacts].map(({ data }: any) => data.filename);
  expect(artifacts.join()).toBe("a.txt,c.txt");
  expect((await tasks()).filter((task) => task.run_id === root)).toHaveLength(1);
  const events = await eventsOf(api, root);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1));
  expect(events.find(({ uid }) => uid === before.uid)).toEqual(before);
  if (runs[0].state !== "SUCCEEDED") return;
  expect((await eventsOf(api, childRun)).filter(({ kind }) => kind === "worker_lost").length).toBeGreaterThanOrEqual(1);
  const { steps } = await api.get(`/agent/runs/${childRun}/conversation`);
  // Steps of the lost attempt are not shown.
  expect(JSON.stringify(steps).match(/"text":"(once|twice)"/g)).toEqual(['"text":"once"', '"text":"twice"']);
});

test("of 50 dispatches in flight when everything is killed, each accepted one has exactly one task, and continues", async () => {
  const known = new Set((await tasks()).map((task) => task.run_id));
  let answered = 0;
  const answers = Array.from({ length: 50 }, async (_one, index) => {
    const answer = await dispatch(script("say: hello"), `burst-${index}`).catch(() => undefined);
    answered += answer?.status === 201 ? 1 : 0;
    return answer?.body.run_id as string | undefined;
  });
  await eventually(() => answered >= 5, { everyMs: 1 });
  await platform.killEverything();
  const accepted = (await Promise.all(answers)).filter((id) => id !== undefined);
  await platform.start();
  const repeated = await Promise.all(
    Array.from(
      { length: 50 },
      async (_one, index) => (await dispatch(script("say: hello"), `burst-${index}`)).body.run_id as string,
    ),
  );
  expect(new Set(repeated).size).toBe(50);
  expect(repeated).toEqual(expect.arrayContaining(accepted));
  await eventually(
    async () => {
      const made = (await tasks()).map((task) => task.run_id).filter((id) => !known.has(id));
      expect([made.length, new Set(made)]).toEqual([50, new Set(repeated)]);
    },
    { everyMs: 200 },
  );
  await succeeded(api, repeated[0]!);
});

test("the platform stops on request and leaves no process", async () => {
  expect(await platform.stop()).toEqual([]);
  await eventually(() => processesWith(platform.dir).length === 0);
  await platform.start();
  expect((await tasks()).length).toBe(51);
});
