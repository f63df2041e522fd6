import { table } from "@millwright/terminal";
import { numberOf, textOption, type Command } from "../command.ts";
import { listAll } from "../list-all.ts";

type ModelPrice = {
  model_id: string;
  version: number;
  input_per_million_usd: number;
  output_per_million_usd: number;
  cache_read_per_million_usd: number | null;
  cache_write_per_million_usd: number | null;
  effective_from: string;
};

const PATH = "/platform/model-prices";

const dollars = (amount: number | null): string => (amount === null ? "as input" : `$${amount}`);

/** The price book of models. */
export const modelPriceCommands: Command[] = [
  {
    words: "model-price list",
    args: [],
    options: { model: { type: "string" } },
    summary: "List the prices of models per million tokens, with all versions, newest first; --model ID selects one.",
    run: async (cli, _args, values) => {
      const prices = await listAll<ModelPrice>(cli, PATH, "prices", {
        model_id: textOption(values, "model"),
        limit: "100",
      });
      const rows = prices.map((price) => [
        ...[price.model_id, String(price.version), price.effective_from],
        ...[price.input_per_million_usd, price.output_per_million_usd].map(dollars),
        ...[price.cache_read_per_million_usd, price.cache_write_per_million_usd].map(dollars),
      ]);
      cli.show(prices, () => table(["MODEL", "VERSION", "FROM", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE"], rows));
    },
  },
  {
    words: "model-price add",
    args: ["MODEL", "INPUT_USD", "OUTPUT_USD"],
    options: { "cache-read": { type: "string" }, "cache-write": { type: "string" }, from: { type: "string" } },
    summary:
      "Add a price of a model in dollars per million tokens (--cache-read, --cache-write: by default as input; --from TIME: by default now). For platform administrators.",
    run: async (cli, [model, input, output], values) => {
      const optional = (name: string): number | undefined => {
        const text = textOption(values, name);
        return text === undefined ? undefined : numberOf(text, `--${name}`);
      };
      const price = await cli.api().post<ModelPrice>(PATH, {
        model_id: model,
        input_per_million_usd: numberOf(input, "INPUT_USD"),
        output_per_million_usd: numberOf(output, "OUTPUT_USD"),
        cache_read_per_million_usd: optional("cache-read"),
        cache_write_per_million_usd: optional("cache-write"),
        effective_from: textOption(values, "from"),
      });
      cli.show(price, () => `version ${price.version} of ${price.model_id} applies from ${price.effective_from} on.`);
    },
  },
];
