import { isSetting, type Settings } from "./read-config.ts";

/** An environment variable, for documentation and for checks of deployments. */
export type SettingDescription = {
  readonly name: string;
  readonly description: string;
  /** The allowed values as a phrase, such as `a whole number from 1 to 256`. */
  readonly allowed: string;
  readonly isRequired: boolean;
  readonly isSecret: boolean;
  /** The text that is read if the variable is absent; a phrase if it depends on the machine. Undefined: none. */
  readonly default: string | undefined;
};

/** Returns every variable of the settings and their groups, in the order of their declaration. */
export const describeSettings = (settings: Settings): SettingDescription[] =>
  Object.values(settings).flatMap((entry) =>
    isSetting(entry)
      ? [
          {
            name: entry.name,
            description: entry.description,
            allowed: entry.allowed,
            isRequired: entry.isRequired,
            isSecret: entry.isSecret,
            default: entry.shownDefault ?? (entry.defaultText === "" ? undefined : entry.defaultText),
          },
        ]
      : describeSettings(entry),
  );
