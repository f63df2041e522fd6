import type { components } from "../../gen/api.ts";

/** Returns the name of an environment. The name is optional. */
export const environmentName = ({ uid, config }: components["schemas"]["Environment"]): string => config.name ?? uid;
