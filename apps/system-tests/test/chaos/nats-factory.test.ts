import { withChaos } from "../support/chaos.ts";

await withChaos("nats-chaos", () => import("../factory.test.ts"));
