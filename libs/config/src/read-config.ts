import type { Setting } from "./settings.ts";

/** The environment of a process. */
export type Env = Readonly<Record<string, string | undefined>>;

type Shape = Readonly<Record<string, Setting<unknown>>>;
type Values<S extends Shape> = { readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never };

/**
 * Reads all settings of a service, once. Reports all faults together, naming variables and never their values.
 *
 * Errors: one plain Error listing every fault; the process should print its message and exit.
 */
export function readConfig<S extends Shape>(env: Env, shape: S): Values<S> {
  const values: Record<string, unknown> = {};
  const faults: string[] = [];
  for (const [key, setting] of Object.entries(shape)) {
    const result = setting.read(env[setting.name]);
    if ("fault" in result) faults.push(`${setting.name} ${result.fault}`);
    else values[key] = Array.isArray(result.value) ? Object.freeze(result.value) : result.value;
  }
  if (faults.length > 0) throw new Error(`Invalid configuration:\n  ${faults.join("\n  ")}`);
  return Object.freeze(values) as Values<S>;
}
