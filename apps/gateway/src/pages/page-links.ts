import { createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
import type { Clock } from "@millwright/clock";

/** What a view token lets its bearer see: one run, and what belongs to it. */
export type View = { readonly runUid: string; readonly ownerType: string; readonly ownerUid: string };

type ViewedRun = { readonly uid: string; readonly ownerType: string; readonly ownerUid: string };

/** Links to our pages. `runUrl` is stable; `sessionLink` opens without signing in until it expires. */
export type PageLinks = {
  runUrl(runUid: string): string;
  sessionLink(run: ViewedRun): string;
  /** What a token permits, if it is ours, of this run and not expired. */
  openView(token: string, runUid: string): View | undefined;
};

const VIEW_HOURS = 24;
const HOUR_MS = 3_600_000;

/** Expiry is rounded up to the hour, so that a link does not change with every read. */
export function pageLinks({
  publicUrl,
  signingKey,
  clock,
}: {
  publicUrl: string;
  signingKey: Uint8Array;
  clock: Clock;
}): PageLinks {
  const key = createSecretKey(signingKey); // as bytes it would be looked at anew each time, which takes longer than the signature
  const sign = (payload: string) => createHmac("sha256", key).update(payload).digest("base64url");
  const runUrl = (runUid: string) => `${publicUrl}/runs/${runUid}`;
  return {
    runUrl,
    sessionLink(run) {
      const expires = Math.ceil(clock.now().getTime() / HOUR_MS) + VIEW_HOURS;
      const payload = [run.uid, run.ownerType, run.ownerUid, expires].join("~");
      return `${runUrl(run.uid)}?view=${encodeURIComponent(`${payload}~${sign(payload)}`)}`;
    },
    openView(token, runUid) {
      const [uid, ownerType, ownerUid, expires, signature, ...rest] = token.split("~");
      if (uid !== runUid || !ownerType || !ownerUid || !expires || !signature || rest.length > 0) return undefined;
      const expected = Buffer.from(sign([uid, ownerType, ownerUid, expires].join("~")));
      const given = Buffer.from(signature);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
      if (Number(expires) * HOUR_MS <= clock.now().getTime()) return undefined;
      return { runUid, ownerType, ownerUid };
    },
  };
}
