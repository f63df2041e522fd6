import { withChaos } from "../support/chaos.ts";

await withChaos("services-chaos", () => import("../code-hosts.test.ts"));
