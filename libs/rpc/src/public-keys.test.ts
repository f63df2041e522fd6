import { expect, test } from "@jest/globals";
import { manualClock } from "@millwright/clock";
import { aCaller, domainError } from "@millwright/testing";
import { CallerSigner, CallerVerifier, RemoteKeys, type PublicKey } from "./index.ts";

const [A, B] = ["http://a/jwks.json", "http://b/jwks.json"] as const;

/** The published keys of each address, and the requests; an address without keys is down. */
function aNetwork(published: Record<string, readonly PublicKey[]>) {
  const asked: string[] = [];
  const get = (async (url: string) => {
    asked.push(url);
    if (!published[url]) throw new TypeError("fetch failed");
    return Response.json({ keys: published[url] });
  }) as typeof fetch;
  return { published, asked, get };
}
const seed = (byte: number) => new Uint8Array(32).fill(byte);

test("a key is fetched once from every address; the replicas of a service have the same key", async () => {
  const [one, other] = [
    await CallerSigner.fromSeed("gateway", seed(1)),
    await CallerSigner.fromSeed("gateway", seed(1)),
  ];
  const { asked, get } = aNetwork({ [A]: [], [B]: [one.jwk] });
  const verifier = new CallerVerifier(new RemoteKeys({ owners: { gateway: [A, B] }, fetch: get }));
  for (const signer of [one, other])
    await expect(verifier.verify(await signer.sign(aCaller()))).resolves.toMatchObject({ principal: { type: "user" } });
  expect(asked).toEqual([A, B]);
});

test("one reachable address of an owner is enough; without any, the error is retryable", async () => {
  const signer = await CallerSigner.fromSeed("gateway", seed(1));
  const network = aNetwork({});
  const verifier = new CallerVerifier(new RemoteKeys({ owners: { gateway: [A, B] }, fetch: network.get }));
  const token = await signer.sign(aCaller());
  await expect(verifier.verify(token)).rejects.toEqual(
    domainError({ kind: "unavailable", reason: "keys_unavailable" }),
  );
  network.published[B] = [signer.jwk];
  await expect(verifier.verify(token)).resolves.toBeDefined();
});

test("rejects keys that a service publishes in another's name", async () => {
  const forger = await CallerSigner.fromSeed("gateway", seed(9));
  const { get } = aNetwork({ [A]: [], [B]: [forger.jwk] });
  const verifier = new CallerVerifier(new RemoteKeys({ owners: { gateway: [A], factories: [B] }, fetch: get }));
  await expect(verifier.verify(await forger.sign(aCaller()))).rejects.toEqual(
    domainError({ reason: "caller_invalid" }),
  );
});

test("a new key is found at once, a withdrawn one expires, and requests for unknown ids are limited", async () => {
  const clock = manualClock();
  const [old, fresh] = [
    await CallerSigner.fromSeed("gateway", seed(1)),
    await CallerSigner.fromSeed("gateway", seed(2)),
  ];
  const network = aNetwork({ [A]: [old.jwk] });
  const keys = new RemoteKeys({ owners: { gateway: [A] }, fetch: network.get, clock });
  expect(await keys.find(old.jwk.kid)).toEqual(old.jwk);
  for (const id of ["x", "y", "z"]) expect(await keys.find(`gateway.${id}`)).toBeUndefined();
  expect(await keys.find("nobody.x")).toBeUndefined();
  expect(network.asked).toHaveLength(1);
  network.published[A] = [old.jwk, fresh.jwk];
  clock.advance(2_000);
  expect(await keys.find(fresh.jwk.kid)).toEqual(fresh.jwk);
  network.published[A] = [fresh.jwk];
  clock.advance(6 * 60_000);
  expect(await keys.find(old.jwk.kid)).toEqual(old.jwk); // valid while it fetches
  await keys.find("gateway.unknown"); // shares that question
  expect(await keys.find(old.jwk.kid)).toBeUndefined();
  expect(network.asked).toHaveLength(3);
});
