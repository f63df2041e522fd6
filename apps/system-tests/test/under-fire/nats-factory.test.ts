import { underFire } from "../support/under-fire.ts";

await underFire("nats-under-fire", () => import("../factory.test.ts"));
