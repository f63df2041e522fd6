import type {
  HarnessAdapter,
  HarnessEvent,
  HarnessConnection,
  StartOptions,
} from "../../src/adapters/harness-adapter.ts";

const OPTIONS: StartOptions = {
  ...{
    program: "/program",
    stateDir: "/workspace/.harness/x",
    home: "/home/agent",
    cwd: "/workspace",
    sessionId: "known",
    isResumed: false,
    provider: "openai",
    model: "",
    reasoning: "",
  },
  ...{
    instructions: "Be good.",
    systemFile: "/home/agent/system.md",
    isReadOnly: false,
    gateway: "http://127.0.0.1:3129",
  },
};

export type Interpreted = {
  readonly events: readonly HarnessEvent[];
  readonly sent: readonly string[];
  readonly connection: HarnessConnection;
};

/** Returns what an adapter sends to a harness, and the events it produces from lines, without running a program. */
export function interpret(
  adapter: HarnessAdapter,
  lines: readonly string[] = [],
  over: Partial<StartOptions> = {},
): Interpreted {
  const [events, sent]: [HarnessEvent[], string[]] = [[], []];
  const connection = adapter.connect(
    { ...OPTIONS, ...over },
    { send: (text) => void sent.push(text), emit: (event) => void events.push(event) },
  );
  for (const line of lines) connection.receive(line);
  return { events, sent, connection };
}

/** Plays the lines one by one, with time to process the consequences of each. `on` may react to events. */
export async function played(
  adapter: HarnessAdapter,
  lines: readonly string[],
  on: (event: HarnessEvent, connection: HarnessConnection) => void,
  over: Partial<StartOptions> = {},
): Promise<Omit<Interpreted, "connection">> {
  const { events, sent, connection } = interpret(adapter, [], over);
  let known = 0;
  const settle = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    for (; known < events.length; known += 1) on(events[known]!, connection);
  };
  await settle();
  for (const line of lines) {
    connection.receive(line);
    await settle();
  }
  return { events, sent };
}
