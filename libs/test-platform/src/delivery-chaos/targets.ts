import type { RetryingClient } from "../drill/client.ts";
import { defineFactory } from "../drill/rig.ts";

const PER_FACTORY = 20;

/** A webhook as its sender knows it. */
export type Target = {
  readonly uid: string;
  readonly factoryUid: string;
  readonly path: string;
  readonly secret: string;
};

/** Added to the body of deliveries that start a run; other deliveries match no automation. */
export const FIRING = { fire: true };

/**
 * Creates `count` webhooks. Each of their factories has two automations: one fires for deliveries with `FIRING`, the
 * other never fires.
 */
export async function makeTargets(client: RetryingClient, count: number): Promise<Target[]> {
  const targets: Target[] = [];
  while (targets.length < count) {
    const uid = await defineFactory(client, `Delivery chaos ${targets.length}`);
    const make = () => client.request("POST", `/factory/${uid}/webhooks`, { name: "delivery-chaos" });
    const made = await Promise.all(Array.from({ length: Math.min(PER_FACTORY, count - targets.length) }, make));
    for (const [name, fire] of [
      ["fires", true],
      ["never", "never"],
    ]) {
      const triggers = made.map((webhook) => ({
        provider: "webhook",
        event: "received",
        filter: { webhook_ids: [webhook.uid], payload: { fire: [fire] } },
      }));
      await client.request("POST", `/factory/${uid}/automations`, { name, prompt: "Read the payload.", triggers });
    }
    targets.push(
      ...made.map((webhook) => ({
        uid: webhook.uid,
        factoryUid: uid,
        path: new URL(webhook.ingress_url).pathname,
        secret: webhook.secret,
      })),
    );
  }
  return targets;
}
