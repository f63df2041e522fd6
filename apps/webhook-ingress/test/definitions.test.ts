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
const webhookPart = (name: string, more: object = {}) => ({
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
  test("are inactive until their version is activated, and then authenticate with the managed secret", async () => {
    const factoryUid = w.aFactory("service_files");
    await stage(factoryUid, 1, [webhookPart("ci", { delivery_id_header: "X-Id" })]);
    expect(await list(factoryUid)).toEqual([]);
    await activate(factoryUid, 1);
    const [created] = await list(factoryUid);
    expect(created).toMatchObject({
      name: "ci",
      authMode: "token",
      secretName: "K",
      secretSet: true,
      enabled: true,
      management: "files",
      deliveryIdHeader: "X-Id",
      teamUid: TEAM,
    });
    expect(await w.send(created!.uid, { headers: bearer("value-of-K", { "x-id": "1" }) })).toMatchObject({
      status: 202,
      body: { delivery_id: "1" },
    });
    expect(
      await w.rows("SELECT type, actor_uid FROM stream.event_pending WHERE entity_uid = $1", [created!.uid]),
    ).toEqual([{ type: "millwright.webhook.created.v1", actor_uid: "applier" }]);
  });
  test("retain their uid while their file exists; without it they are deleted, and get a new uid if it returns", async () => {
    const factoryUid = w.aFactory("service_files");
    const [first] = await apply(factoryUid, 1, [webhookPart("ci")]);
    const [changed] = await apply(factoryUid, 2, [
      webhookPart("ci", { auth_mode: "signature", signature_scheme: "github", secret_name: "L" }),
    ]);
    expect(changed).toMatchObject({
      uid: first!.uid,
      authMode: "signature",
      signatureScheme: "github",
      secretName: "L",
    });
    expect(await apply(factoryUid, 4, [])).toEqual([]);
    expect((await w.send(first!.uid, { headers: bearer("value-of-K") })).status).toBe(404);
    const [again] = await apply(factoryUid, 5, [webhookPart("ci")]);
    expect(again!.uid).not.toBe(first!.uid);
  });
  test("retain the enabled state that a user set while the file is unchanged", async () => {
    const factoryUid = w.aFactory("service_files");
    const [created] = await apply(factoryUid, 1, [webhookPart("ci")]);
    await w.client.replaceWebhook({ webhookUid: created!.uid, name: "ci", enabled: false }, as);
    expect(await apply(factoryUid, 2, [webhookPart("ci")])).toMatchObject([{ enabled: false }]);
    expect(await apply(factoryUid, 3, [webhookPart("ci", { delivery_id_header: "X" })])).toMatchObject([
      { enabled: true },
    ]);
  });
  test("roll forward only; activating an absent or dropped stage is a conflict", async () => {
    const factoryUid = w.aFactory("service_files");
    await apply(factoryUid, 2, [webhookPart("two")]);
    await stage(factoryUid, 1, [webhookPart("one")]);
    expect(await activate(factoryUid, 1)).toBe(2);
    await stage(factoryUid, 3, [webhookPart("three")]);
    await owner().discardDefinition({ factoryUid, version: 3n }, asFactories);
    await expect(activate(factoryUid, 3)).rejects.toEqual(
      domainError({ kind: "conflict", reason: "stage_missing", retryable: true }),
    );
    expect((await list(factoryUid)).map(({ name }) => name)).toEqual(["two"]);
  });
  test("are activated by the event of the definition; one from before this service changes nothing", async () => {
    const factoryUid = w.aFactory("service_files");
    await stage(factoryUid, 2, [webhookPart("activated")]);
    for (const version of [1, 2])
      w.factoryEvents.push({
        type: "millwright.definition.activated.v1",
        entityUid: factoryUid,
        payload: { factory_uid: factoryUid, version },
      });
    await w.service.factoryEvents.drain();
    expect((await list(factoryUid)).map(({ name }) => name)).toEqual(["activated"]);
    expect(await w.rows("SELECT 1 FROM stream.dead_lettered_events")).toEqual([]);
  });
  test("accept only changes of enabled through the API, and none if the files are external", async () => {
    const [inside, outside] = [w.aFactory("service_files"), w.aFactory("external_files")];
    const [[internal], [external]] = [
      await apply(inside, 1, [webhookPart("ci")]),
      await apply(outside, 1, [webhookPart("ci")]),
    ];
    const refused = domainError({ kind: "conflict", reason: "managed_by_files" });
    for (const uid of [internal!.uid, external!.uid]) {
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
      (await w.client.replaceWebhook({ webhookUid: internal!.uid, name: "ci", enabled: false }, as)).webhook,
    ).toMatchObject({ enabled: false });
    await expect(
      w.client.replaceWebhook({ webhookUid: external!.uid, name: "ci", enabled: false }, as),
    ).rejects.toEqual(refused);
  });
  test("with an absent or unusable secret, or beyond the limit, are reported at their files, and nothing is staged", async () => {
    const factoryUid = w.aFactory("service_files");
    w.secrets.set(`${TEAM} SPACE`, { value: "a b", revision: "a/1" });
    const found = (
      await stage(factoryUid, 1, [
        webhookPart("a", { secret_name: "ABSENT" }),
        webhookPart("b", { secret_name: "SPACE", auth_mode: "url_token" }),
        webhookPart("ok"),
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
          Array.from({ length: 20 }, (_, n) => webhookPart(`w${n}`)),
        )
      ).diagnostics.map(({ path, code }) => [path, code]),
    ).toEqual([["factory.yaml", "FF_LIMIT_EXCEEDED"]]);
    expect((await stage(factoryUid, 1, [webhookPart("fine", { secret_name: "DRY" })], true)).diagnostics).toHaveLength(
      1,
    );
    expect((await stage(factoryUid, 1, [webhookPart("fine")], true)).diagnostics).toEqual([]);
    expect(await w.rows("SELECT 1 FROM definition_stages WHERE factory_uid = $1", [factoryUid])).toEqual([]);
    await expect(stage(factoryUid, 1, [{ name: "x" }])).rejects.toEqual(
      domainError({ reason: "definition_malformed" }),
    );
  });
});
