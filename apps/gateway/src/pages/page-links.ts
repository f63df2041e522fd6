import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from "node:crypto";
import type { Clock } from "@millwright/clock";

/** What the bearer of a view token can see: one run and the resources that belong to it. */
export type View = { readonly runUid: string; readonly ownerType: string; readonly ownerUid: string };

type ViewedRun = { readonly uid: string; readonly ownerType: string; readonly ownerUid: string };

/**
 * Builds and verifies links to our pages. `runUrl` is stable; `sessionLink` opens without signing in until it expires.
 */
export type PageLinks = {
  readonly publicUrl: string;
  runUrl(runUid: string): string;
  sessionLink(run: ViewedRun): string;
  /** Returns the permission of a token if its signature is valid, it is for this run and it has not expired. */
  openView(token: string, runUid: string): View | undefined;
};

const VIEW_HOURS = 24;
const HOUR_MS = 3_600_000;

/**
 * Returns the links of an installation. The expiry is rounded up to the hour, so that a link does not change with every
 * read.
 */
export function pageLinks({
  publicUrl,
  signingKey,
  acceptedKeys = [],
  clock,
}: {
  publicUrl: string;
  signingKey: Uint8Array;
  /** Links that these keys signed are valid, too. */
  acceptedKeys?: readonly Uint8Array[];
  clock: Clock;
}): PageLinks {
  // created once: createHmac would import key bytes on every call, which takes longer than signing
  const [key, ...older] = [signingKey, ...acceptedKeys].map((bytes) => createSecretKey(bytes)) as [KeyObject];
  const sign = (payload: string, signer = key) => createHmac("sha256", signer).update(payload).digest("base64url");
  const runUrl = (runUid: string) => `${publicUrl}/runs/${runUid}`;
  return {
    publicUrl,
    runUrl,
    sessionLink(run) {
      const expires = Math.ceil(clock.now().getTime() / HOUR_MS) + VIEW_HOURS;
      const payload = [run.uid, run.ownerType, run.ownerUid, expires].join("~");
      return `${runUrl(run.uid)}?view=${encodeURIComponent(`${payload}~${sign(payload)}`)}`;
    },
    openView(token, runUid) {
      const [uid, ownerType, ownerUid, expires, signature, ...rest] = token.split("~");
      if (uid !== runUid || !ownerType || !ownerUid || !expires || !signature || rest.length > 0) return undefined;
      const given = Buffer.from(signature);
      const isSigned = [key, ...older].some((signer) => {
        const expected = Buffer.from(sign([uid, ownerType, ownerUid, expires].join("~"), signer));
        return given.length === expected.length && timingSafeEqual(given, expected);
      });
      if (!isSigned) return undefined;
      if (Number(expires) * HOUR_MS <= clock.now().getTime()) return undefined;
      return { runUid, ownerType, ownerUid };
    },
  };
}
