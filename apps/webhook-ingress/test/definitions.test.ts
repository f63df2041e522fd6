import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { serviceCaller } from "@millwright/caller";
import { definitions } from "@millwright/contracts";
import { call } from "@millwright/rpc";
import { domainError } from "@millwright/testing";
import { bearer, OWNER, startWorld, TEAM, type World } from "./setup.ts";

let w: World;
beforeAll(async () => {
  w = await startWorld();
  for (const name of ["K", "L"]) w.secrets.set(`${TEAM} ${name}`, { value: `value-of-${name}`, revision: "a/1" });
});
afterAll(() => w?.stop());

const as = call(OWNER);
const asFactories = call(serviceCaller("factories", "r", { type: "user", uid: "applier" }));
const owner = () => w.clientOf(definitions.DefinitionOwnerService);
const part = (name: string, more: object = {}) => ({
  name,
  auth_mode: "token",
  secret_name: "K",
  enabled: true,
  ...more,
});
const stage = (factoryUid: string, version: number, webhooks: object[], dryRun = false) =>
  owner().stageDefinition(
    { factoryUid, teamUid: TEAM, version: BigInt(version), definition: { webhooks: webhooks as never[] }, dryRun },
    asFactories,
  );
const activate = async (factoryUid: string, version: number) =>
  Number((await owner().activateDefinition({ factoryUid, version: BigInt(version) }, asFactories)).activeVersion);
const list = async (factoryUid: string) => (await w.client.listWebhooks({ factoryUid }, as)).webhooks;
const apply = async (factoryUid: string, version: number, webhooks: object[]) => {
  expect((await stage(factoryUid, version, webhooks)).diagnostics).toEqual([]);
  expect(await activate(factoryUid, version)).toBe(version);
  return list(factoryUid);
};

describe("a definition's webhooks", () => {
  test("are inert until their version is activated, and then let senders in with the managed secret", async () => {
    const factoryUid = w.aFactory("service_files");
    await stage(factoryUid, 1, [part("ci", { delivery_id_header: "X-Id" })]);
    expect(await list(factoryUid)).toEqual([]);
    await activate(factoryUid, 1);
    const [made] = await list(factoryUid);
    expect(made).toMatchObject({
      name: "ci",
      authMode: "token",
      secretName: "K",
      secretSet: true,
      enabled: true,
      management: "files",
      deliveryIdHeader: "X-Id",
      teamUid: TEAM,
    });
    expect(await w.send(made!.uid, { headers: bearer("value-of-K", { "x-id": "1" }) })).toMatchObject({
      status: 202,
      body: { delivery_id: "1" },
    });
    expect(await w.rows("SELECT type, actor_uid FROM stream.event_pending WHERE entity_uid = $1", [made!.uid])).toEqual(
      [{ type: "millwright.webhook.created.v1", actor_uid: "applier" }],
    );
  });
  test("keep their uid while their file is there, whatever it says; without it they are deleted, and come back as others", async () => {
    const factoryUid = w.aFactory("service_files");
    const [first] = await apply(factoryUid, 1, [part("ci")]);
    const [changed] = await apply(factoryUid, 2, [
      part("ci", { auth_mode: "signature", signature_scheme: "github", secret_name: "L" }),
    ]);
    expect(changed).toMatchObject({
      uid: first!.uid,
      authMode: "signature",
      signatureScheme: "github",
      secretName: "L",
    });
    expect(await apply(factoryUid, 4, [])).toEqual([]);
    expect((await w.send(first!.uid, { headers: bearer("value-of-K") })).status).toBe(404);
    const [again] = await apply(factoryUid, 5, [part("ci")]);
    expect(again!.uid).not.toBe(first!.uid);
  });
  test("keep the switch that people set while the file says the same", async () => {
    const factoryUid = w.aFactory("service_files");
    const [made] = await apply(factoryUid, 1, [part("ci")]);
    await w.client.replaceWebhook({ webhookUid: made!.uid, name: "ci", enabled: false }, as);
    expect(await apply(factoryUid, 2, [part("ci")])).toMatchObject([{ enabled: false }]);
    expect(await apply(factoryUid, 3, [part("ci", { delivery_id_header: "X" })])).toMatchObject([{ enabled: true }]);
  });
  test("roll forward only; an absent stage is told, and a dropped one is gone", async () => {
    const factoryUid = w.aFactory("service_files");
    await apply(factoryUid, 2, [part("two")]);
    await stage(factoryUid, 1, [part("one")]);
    expect(await activate(factoryUid, 1)).toBe(2);
    await stage(factoryUid, 3, [part("three")]);
    await owner().dropDefinition({ factoryUid, version: 3n }, asFactories);
    await expect(activate(factoryUid, 3)).rejects.toEqual(
      domainError({ kind: "conflict", reason: "stage_missing", retryable: true }),
    );
    expect((await list(factoryUid)).map(({ name }) => name)).toEqual(["two"]);
  });
  test("follow when the event of the commit is heard; one of before this service was there changes nothing", async () => {
    const factoryUid = w.aFactory("service_files");
    await stage(factoryUid, 2, [part("heard")]);
    for (const version of [1, 2])
      w.happened.push({
        type: "millwright.definition.activated.v1",
        entityUid: factoryUid,
        payload: { factory_uid: factoryUid, version },
      });
    await w.service.factoryEvents.drain();
    expect((await list(factoryUid)).map(({ name }) => name)).toEqual(["heard"]);
    expect(await w.rows("SELECT 1 FROM stream.parked_events")).toEqual([]);
  });
  test("change through the API in nothing but the switch, and in nothing where the files are elsewhere", async () => {
    const [inside, outside] = [w.aFactory("service_files"), w.aFactory("external_files")];
    const [[ours], [theirs]] = [await apply(inside, 1, [part("ci")]), await apply(outside, 1, [part("ci")])];
    const refused = domainError({ kind: "conflict", reason: "managed_by_files" });
    for (const uid of [ours!.uid, theirs!.uid]) {
      await expect(w.client.replaceWebhook({ webhookUid: uid, name: "other", enabled: true }, as)).rejects.toEqual(
        refused,
      );
      await expect(
        w.client.replaceWebhook({ webhookUid: uid, name: "ci", deliveryIdHeader: "X", enabled: true }, as),
      ).rejects.toEqual(refused);
      await expect(w.client.rotateSecret({ webhookUid: uid }, as)).rejects.toEqual(refused);
      await expect(w.client.deleteWebhook({ webhookUid: uid }, as)).rejects.toEqual(refused);
    }
    expect(
      (await w.client.replaceWebhook({ webhookUid: ours!.uid, name: "ci", enabled: false }, as)).webhook,
    ).toMatchObject({ enabled: false });
    await expect(w.client.replaceWebhook({ webhookUid: theirs!.uid, name: "ci", enabled: false }, as)).rejects.toEqual(
      refused,
    );
  });
  test("that lack their secret, cannot have it, or are too many beside others are said at their files, and nothing is staged", async () => {
    const factoryUid = w.aFactory("service_files");
    w.secrets.set(`${TEAM} SPACE`, { value: "a b", revision: "a/1" });
    const found = (
      await stage(factoryUid, 1, [
        part("a", { secret_name: "ABSENT" }),
        part("b", { secret_name: "SPACE", auth_mode: "url_token" }),
        part("ok"),
      ])
    ).diagnostics;
    expect(found.map(({ path, code, severity }) => [path, code, severity])).toEqual([
      ["webhooks/a.yaml", "FF_INVALID_REFERENCE", "error"],
      ["webhooks/b.yaml", "FF_INVALID_VALUE", "error"],
    ]);
    await w.aWebhook({ factoryUid });
    expect(
      (
        await stage(
          factoryUid,
          1,
          Array.from({ length: 20 }, (_one, n) => part(`w${n}`)),
        )
      ).diagnostics.map(({ path, code }) => [path, code]),
    ).toEqual([["factory.yaml", "FF_LIMIT_EXCEEDED"]]);
    expect((await stage(factoryUid, 1, [part("fine", { secret_name: "DRY" })], true)).diagnostics).toHaveLength(1);
    expect((await stage(factoryUid, 1, [part("fine")], true)).diagnostics).toEqual([]);
    expect(await w.rows("SELECT 1 FROM definition_stages WHERE factory_uid = $1", [factoryUid])).toEqual([]);
    await expect(stage(factoryUid, 1, [{ name: "x" }])).rejects.toEqual(
      domainError({ reason: "definition_malformed" }),
    );
  });
});
