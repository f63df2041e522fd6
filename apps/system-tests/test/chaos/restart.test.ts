import { withChaos } from "../support/chaos.ts";

await withChaos("processes-chaos", () => import("../restart.test.ts"));
