import { expect, test } from "@jest/globals";
import { createLogger } from "@millwright/telemetry";
import { StartupWarnings } from "./startup-warnings.ts";

test("warnings and errors reach the console while the platform starts, and the log always", () => {
  const logged: string[] = [];
  const printed: string[] = [];
  const destination = new StartupWarnings({ write: (line) => logged.push(line) }, (line) => printed.push(line));
  const log = createLogger({ service: "test", destination });
  log.info({ operation: 'quotes "level":"warn"' }, "starting");
  log.warn("the disk is almost full");
  log.error({ error: new Error("authorization violation") }, "NATS refuses the connection");
  destination.started();
  log.warn("a batch was retried");
  expect(printed).toEqual(["the disk is almost full", "NATS refuses the connection: authorization violation"]);
  expect(logged).toHaveLength(4);
});
