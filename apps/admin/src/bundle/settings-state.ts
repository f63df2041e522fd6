import { describeSettings, type Settings } from "@millwright/config";
import { settings as factories } from "@millwright/factories/config";
import { settings as gateway } from "@millwright/gateway/config";
import { settings as metrics } from "@millwright/metrics/config";
import { settings as orchestrator } from "@millwright/orchestrator/config";
import { settings as scheduler } from "@millwright/scheduler/config";
import { settings as scoring } from "@millwright/scoring/config";
import { settings as standalone } from "@millwright/standalone/config";
import { settings as webhookIngress } from "@millwright/webhook-ingress/config";
import { settings as worker } from "@millwright/worker/config";

const ALL: readonly Settings[] = [
  gateway,
  orchestrator,
  factories,
  scheduler,
  scoring,
  metrics,
  webhookIngress,
  worker,
  standalone,
];

/** Numbers, durations, sizes and switches. Every other value may contain a secret or a name. */
const SAFE = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|K|M|G|T)?|true|false)$/;

/**
 * Returns every known variable that the environment sets: its value if it is a number, a duration, a size or a switch,
 * or one of the words that its declaration lists; otherwise "set".
 */
export function settingsState(env: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  const known = new Map(ALL.flatMap((settings) => describeSettings(settings)).map((one) => [one.name, one]));
  return Object.fromEntries(
    [...known.values()]
      .filter(({ name }) => env[name])
      .map(({ name, isSecret, allowed }) => {
        const value = env[name]!;
        const isShown =
          !isSecret && (SAFE.test(value) || allowed.split(/,| or /).some((word) => word.trim() === `"${value}"`));
        return [name, isShown ? value : "set"];
      }),
  );
}
