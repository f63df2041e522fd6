import { NotFound, textOption, UsageError, type Cli, type Values } from "./command.ts";

export type Factory = { uid: string; name: string; alias: string | null };

/** The option of every command that is about one factory. */
export const FACTORY = { factory: { type: "string" as const } };

/** The factory named with --factory (uid, name or alias), else the only one there is. */
export async function factoryUid(cli: Cli, values: Values): Promise<string> {
  const named = textOption(values, "factory");
  if (named !== undefined && /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(named)) return named;
  const { factories } = await cli.api().get<{ factories: Factory[] }>("/factory", { search: named, limit: 100 });
  const found = factories.filter((factory) => named === undefined || factory.name === named || factory.alias === named);
  if (found.length === 1) return found[0]!.uid;
  if (found.length === 0)
    throw new NotFound(
      named === undefined
        ? "There is no factory yet. Create one: millwright factory create NAME."
        : `There is no factory ${named}.`,
    );
  throw new UsageError("There are several factories. Select one: --factory UID, name or alias.");
}

/** The path of something that belongs to the factory named with --factory. */
export const factoryPath = async (cli: Cli, values: Values, ...more: readonly string[]): Promise<string> =>
  [`/factory/${await factoryUid(cli, values)}`, ...more].join("/");
