import { beforeEach, expect, test } from "@jest/globals";
import { fakeApi } from "./fake-api.ts";

const { answers, seen, millwright } = fakeApi();

const AGENT = "01a202d0-0000-7000-8000-000000000001";
const FACTORY = "01a202d0-0000-7000-8000-000000000002";
const TEAM_PATH = "/api/v1/team/t1";
const AGENT_PATH = `/api/v1/agent/identities/${AGENT}`;
const FACTORY_PATH = `/api/v1/factory/${FACTORY}`;

beforeEach(() => {
  const settings = { concurrency_limit: 5, queue_paused: false };
  const team = { status: 200, body: { uid: "t1", ...settings, queue_weight: 2 } };
  const agent = { status: 200, body: { uid: AGENT, ...settings, concurrency_limit: 0, queue_priority: -10 } };
  const factory = { status: 200, body: { uid: FACTORY, ...settings, queue_paused: true } };
  Object.assign(answers, {
    [`GET ${TEAM_PATH}`]: team,
    [`PATCH ${TEAM_PATH}`]: team,
    [`GET ${AGENT_PATH}`]: agent,
    [`PUT ${AGENT_PATH}`]: agent,
    [`GET ${FACTORY_PATH}`]: factory,
    [`PATCH ${FACTORY_PATH}`]: factory,
  });
});

const cells = (out: string): string[] => out.split("\n")[1]!.split(/\s{2,}/);

test("queue get shows the settings of the team, a factory or an agent", async () => {
  const { code, out } = await millwright("queue", "get");
  expect([code, out.split("\n")[0]]).toEqual([0, expect.stringMatching(/^OF +UID +CONCURRENCY LIMIT +PAUSED/)]);
  expect(cells(out)).toEqual(["team", "t1", "5", "no", "2"]);
  expect(cells((await millwright("queue", "get", "--factory", FACTORY)).out)).toEqual(["factory", FACTORY, "5", "yes"]);
  expect(cells((await millwright("queue", "get", "--agent", AGENT)).out)).toEqual([
    "agent",
    AGENT,
    "default",
    "no",
    "-10",
  ]);
  expect(JSON.parse((await millwright("queue", "get", "--json")).out)).toMatchObject({ queue_weight: 2 });
});

test.each([
  [
    ["queue", "set", "--concurrency-limit", "20", "--weight", "0.5"],
    "PATCH",
    TEAM_PATH,
    { concurrency_limit: 20, queue_weight: 0.5 },
  ],
  [["queue", "set", "--factory", FACTORY, "--concurrency-limit", "0"], "PATCH", FACTORY_PATH, { concurrency_limit: 0 }],
  [["queue", "set", "--agent", AGENT, "--priority", "-10"], "PUT", AGENT_PATH, { queue_priority: -10 }],
  [["queue", "pause"], "PATCH", TEAM_PATH, { queue_paused: true }],
  [["queue", "pause", "--factory", FACTORY], "PATCH", FACTORY_PATH, { queue_paused: true }],
  [["queue", "resume", "--agent", AGENT], "PUT", AGENT_PATH, { queue_paused: false }],
])("%j sends exactly what is given", async (argv, method, path, body) => {
  expect((await millwright(...argv)).code).toBe(0);
  expect(seen.map((request) => [request.method, request.path, request.body])).toEqual([[method, path, body]]);
});

test.each([
  [["queue", "set"], "Give --concurrency-limit, --priority or --weight."],
  [["queue", "set", "--concurrency-limit", "many"], '--concurrency-limit must be a number (got "many").'],
  [["queue", "set", "--priority", "1"], "Only an agent has a priority: give --agent UID."],
  [["queue", "set", "--weight", "2", "--agent", AGENT], "Only a team has a weight: omit --factory and --agent."],
  [["queue", "pause", "--agent", AGENT, "--factory", FACTORY], "Give --factory or --agent, not both."],
  [["queue", "pause", "--agent", "../x"], '"../x" is not a valid agent.'],
])("%j is refused before anything is sent", async (argv, message) => {
  expect(await millwright(...argv)).toMatchObject({ code: 2, err: expect.stringContaining(message) });
  expect(seen).toEqual([]);
});
