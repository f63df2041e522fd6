import { expect, test } from "@jest/globals";
import { serviceCaller } from "@millwright/caller";
import { manualClock } from "@millwright/clock";
import { aCaller, domainError } from "@millwright/testing";
import { CallerSigner, CallerVerifier } from "./index.ts";

const invalid = domainError({ kind: "unauthenticated", reason: "caller_invalid" });

test("a token is reused for half a minute, valid for one, and invalid afterwards, cached or not", async () => {
  const clock = manualClock("2026-11-20T10:00:00.000Z");
  const signer = await CallerSigner.create("gateway", clock);
  const [caching, fresh] = [new CallerVerifier([signer.jwk], clock), new CallerVerifier([signer.jwk], clock)];
  const caller = aCaller();
  const token = await signer.sign(caller);
  expect(await caching.verify(token)).toEqual(caller);
  clock.advance(29_000);
  expect(await signer.sign(caller)).toBe(token);
  clock.advance(2_000);
  expect(await signer.sign(caller)).not.toBe(token);
  expect(await caching.verify(token)).toEqual(caller);
  clock.advance(40_000);
  await expect(caching.verify(token)).rejects.toEqual(invalid);
  await expect(fresh.verify(token)).rejects.toEqual(invalid);
});

test("equal callers share a token whatever their request, whose id is sent beside it", async () => {
  const signer = await CallerSigner.create("gateway");
  const verifier = new CallerVerifier([signer.jwk]);
  const first = aCaller({ requestId: "r1" });
  const second = { ...first, requestId: "r2" };
  const token = await signer.sign(first);
  expect(await signer.sign(second)).toBe(token);
  expect(await signer.sign({ ...first, platformAdmin: true })).not.toBe(token);
  const authenticated = (header: Record<string, string>) =>
    verifier.authenticate(new Headers({ "millwright-caller": token, ...header }));
  expect(await authenticated({ "x-request-id": "r2" })).toEqual(second);
  expect(await authenticated({})).toEqual(first); // as sent by version 0.1.0
});

test("a changed token is rejected", async () => {
  const signer = await CallerSigner.create("gateway");
  const verifier = new CallerVerifier([signer.jwk]);
  const [head, body = "", signature] = (await signer.sign(aCaller())).split(".");
  const claims = JSON.parse(Buffer.from(body, "base64url").toString()) as { caller: object };
  const raised = Buffer.from(JSON.stringify({ ...claims, caller: { ...claims.caller, platformAdmin: true } })).toString(
    "base64url",
  );
  const unsigned = Buffer.from(JSON.stringify({ alg: "none" })).toString("base64url");
  for (const token of [`${head}.${raised}.${signature}`, `${unsigned}.${raised}.`, "", "a.b.c"]) {
    await expect(verifier.verify(token)).rejects.toEqual(invalid);
  }
});

test("a service signs for users and for itself, never for another service", async () => {
  const [gateway, factories] = [await CallerSigner.create("gateway"), await CallerSigner.create("factories")];
  const verifier = new CallerVerifier([gateway.jwk, factories.jwk]);
  await expect(verifier.verify(await factories.sign(serviceCaller("factories", "r1")))).resolves.toMatchObject({
    principal: { uid: "factories" },
  });
  await expect(verifier.verify(await factories.sign(aCaller()))).resolves.toMatchObject({
    principal: { type: "user" },
  });
  await expect(verifier.verify(await factories.sign(serviceCaller("gateway", "r1")))).rejects.toEqual(invalid);
});
