import { systemClock } from "@millwright/clock";
import { publicApp } from "./public-app.ts";

/**
 * Prints the OpenAPI document of the public API without a running platform. Routes only use their dependencies when
 * they handle a request, so the dependencies are absent here.
 */
const absent: never = new Proxy(() => {}, { get: () => absent, apply: () => absent }) as never;
const { document } = publicApp({
  options: {
    masterKey: new Uint8Array(32),
    publicUrl: "http://127.0.0.1:8080",
    clock: systemClock,
    log: absent,
    metrics: absent,
  } as never,
  authenticate: absent,
  identity: absent,
  sessions: absent,
  signInLinks: absent,
  providerSignIn: undefined,
  sql: absent,
  vault: absent,
  cursors: absent,
  createOnce: absent,
  findCreated: absent,
  upstreams: absent,
  respondOnce: absent,
  limitMetrics: absent,
});
process.stdout.write(JSON.stringify(document));
