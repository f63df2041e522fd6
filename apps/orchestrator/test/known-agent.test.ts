import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { MODEL_SECRETS } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { aCaller, domainError } from "@millwright/testing";
import { MODEL_PROVIDERS } from "../src/catalog/domain/model-providers.ts";
import { catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";

let p: CatalogPlatform;
beforeAll(async () => {
  p = await catalogPlatform();
});
afterAll(() => p.close());

const caller = aCaller();
const teamUid = caller.teams[0]!.teamUid;
/** Identity does not have this agent: a run of it can be created only without asking. */
const agentUid = newUid();
const agent = {
  agentUid,
  agentName: "builder",
  layers: [{ source: "agent", uid: agentUid, version: 1n, config: { name: "builder", prompt: "Build." } }],
};
const query = { teamUid: teamUid as string, agentUid, askedSecrets: [...MODEL_SECRETS] };
const create = (knownAgent: { query: Partial<typeof query> & { agentName?: string }; agent: typeof agent }) =>
  p.runs.createRuns(
    { runs: [{ prompt: "Build it", ownerType: "team", ownerUid: teamUid, agentUid }], knownAgent },
    p.as(caller),
  );

test("an agent that the gateway has resolved is not resolved again", async () => {
  const { runs } = await create({ query, agent });
  expect(runs[0]?.run).toMatchObject({ agentConfig: { name: "builder" } });
});

test.each([
  ["of another agent", { ...query, agentUid: newUid() }],
  ["of another team", { ...query, teamUid: newUid() }],
  ["found by name", { ...query, agentName: "builder" }],
  ["of a gateway that did not look up all secrets", { ...query, askedSecrets: query.askedSecrets.slice(1) }],
])("a known agent %s is ignored", async (_what, other) => {
  await expect(create({ query: other, agent })).rejects.toEqual(domainError({ reason: "agent_not_found" }));
});

test("the secrets that the gateway looks up are those that decide on the providers", () => {
  expect([...MODEL_SECRETS].toSorted()).toEqual(MODEL_PROVIDERS.map(({ decidingName }) => decidingName).toSorted());
});
