export { describeSettings, type SettingDescription } from "./describe-settings.ts";
export { parseDuration } from "./duration.ts";
export { invalidConfiguration, readConfig, type Env, type Rule, type Settings, type ValuesOf } from "./read-config.ts";
export { optional, partsOf, required, type Setting } from "./settings.ts";
