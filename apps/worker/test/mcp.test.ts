import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { eventually, ModelServer } from "@millwright/testing";
import { INSIDE_NODE } from "../src/sandbox/bubblewrap.ts";
import { bareHost, type SandboxKind } from "../src/sandbox/spec.ts";
import { executionDir, type ContextOptions, type Event } from "./support/a-context.ts";
import { during, ends, execute, kinds, script } from "./support/execute.ts";
import { aHttpMcpServer, PLACE_STDIO_SERVER } from "./support/mcp-servers.ts";
import { inBubblewrap, inEachSandbox, markedSeconds, processesLike, withDirectory } from "./support/sandboxes.ts";

const nodeOf = (kind: SandboxKind) => (kind === "bwrap" ? INSIDE_NODE : process.execPath);
const stdio = (kind: SandboxKind, name = "calc", more: object = {}) => ({
  name,
  command: "sh",
  args: ["-c", `exec ${nodeOf(kind)} --no-warnings ~/server.mjs "$@"`, "server"],
  ...more,
});
const withServers = (...mcpServers: object[]): NonNullable<ContextOptions["assignment"]> => ({
  setupCommands: [PLACE_STDIO_SERVER],
  mcpServers,
});
const call = (tool: string, more = "", server = "calc") =>
  `- mcp: {server: ${server}, tool: ${tool}${more}, allow_failure: true}`;
const toolResults = (events: readonly Event[]) =>
  ends(events).map(({ state, output }) => [
    state,
    (output as { text?: string; error?: string }).text ?? (output as { error?: string }).error,
  ]);
const ofKind = (events: readonly Event[], kind: string) =>
  events.filter((event) => event.kind === kind).map(({ payload }) => payload);

inEachSandbox("servers of tools", (kind) => {
  test("that are commands run in the sandbox; the agent gets their tools, and their failures as results", () =>
    withDirectory(async (root) => {
      const prompt = script(
        call("add", ', json: \'{"a": 20, "b": 22}\''),
        call("fail"),
        call("nothing"),
        call("touch"),
        "- shell: cat touched.txt",
      );
      const { result, events } = await execute({
        dir: await executionDir(root, "e1"),
        kind,
        prompt,
        assignment: withServers(stdio(kind)),
      });
      expect(result.outcome).toBe("DONE");
      expect(toolResults(events).slice(0, 3)).toEqual([
        ["completed", "42"],
        ["failed", "It cannot be done."],
        ["failed", 'Unknown tool "mcp__calc__nothing".'],
      ]);
      expect(ends(events).at(-1)).toMatchObject({ output: { exit_code: 0, output: "by a server\n" } });
      expect(ofKind(events, "mcp_server_started")).toEqual([
        { server: "calc", transport: "stdio", tools: expect.arrayContaining(["mcp__calc__add", "mcp__calc__die"]) },
      ]);
      expect(ends(events)[0]).toMatchObject({ name: "mcp__calc__add", category: "integration" });
      expect(kinds(events).indexOf("mcp_server_started")).toBeLessThan(kinds(events).indexOf("agent_started"));
    }));

  test("that die, flood, write invalid lines or exceed limits fail their own calls; the next call restarts them, a few times", () =>
    withDirectory(async (root) => {
      const prompt = script(
        call("die"),
        call("add", ', json: \'{"a": 1, "b": 1}\''),
        call("flood"),
        call("long"),
        call("babble"),
        call("die"),
        call("add"),
      );
      const { result, events } = await execute({
        dir: await executionDir(root, "e1"),
        kind,
        prompt,
        assignment: withServers(stdio(kind)),
      });
      expect(result.outcome).toBe("DONE");
      const [died, added, flooded, long, babbled, again, over] = toolResults(events) as [string, string][];
      expect(died).toEqual([
        "failed",
        expect.stringMatching(/^The MCP server calc did not respond: It has ended \(exit code 7\): out of ideas/),
      ]);
      expect(added).toEqual(["completed", "2"]);
      expect(flooded).toEqual(["failed", expect.stringContaining("it wrote too much without a response")]);
      expect(long![0]).toBe("completed");
      expect(long![1].length).toBeLessThan(64 * 1024);
      expect(ends(events)[3]).toMatchObject({ output: { truncated: true } });
      expect(babbled).toEqual(["failed", expect.stringContaining("A line is longer than the protocol allows")]);
      expect(again![0]).toBe("failed");
      expect(over).toEqual(["failed", expect.stringContaining("is not restarted")]);
    }));

  test("that cannot be started are reported as missing, and the run continues without them", () =>
    withDirectory(async (root) => {
      const mcpServers = [
        { name: "absent", command: "no-such-program-anywhere" },
        { name: "silent", command: "sh", args: ["-c", "echo why >&2; exit 3"] },
        { name: "managed", managedId: "srv-1" },
        { name: "nameless", command: "sh", args: ["${NOBODY}"] },
        { name: "far", url: "http://mcp.example.test/mcp" },
      ];
      const { result, events } = await execute({
        dir: await executionDir(root, "e1"),
        kind,
        prompt: script("- say: I continue."),
        assignment: withServers(...mcpServers),
      });
      expect(result.outcome).toBe("DONE");
      const failed = Object.fromEntries(ofKind(events, "mcp_server_failed").map(({ server, text }) => [server, text]));
      expect(failed["absent"]).toContain("ENOENT");
      expect(failed["silent"]).toContain("It has ended (exit code 3): why");
      expect(failed["managed"]).toContain('No managed MCP server "srv-1" is registered');
      expect(failed["nameless"]).toContain("${NOBODY}, which is neither a variable nor a secret of this run");
      expect(failed["far"]).toContain("No connection to mcp.example.test:80: this run must not connect to it.");
      expect(ofKind(events, "egress_denied")).toEqual([
        { host: "mcp.example.test", port: 80, reason: "host_not_allowed" },
      ]);
    }));

  test("get secrets by name, and show none", () =>
    withDirectory(async (root) => {
      const server = stdio(kind, "calc", {
        env: { SERVER_KEY: "key ${CANARY}", LITERAL_TOKEN: "literal-secret-value" },
      });
      server.args.push("${CANARY}", "$${NOT_FILLED}");
      const { events } = await execute({
        dir: await executionDir(root, "e1"),
        kind,
        prompt: script(call("secret"), "- shell: echo literal-secret-value"),
        assignment: { ...withServers(server), secrets: { CANARY: "canary-secret-value" } },
      });
      expect(toolResults(events)[0]).toEqual(["completed", "env key ***, argument ***"]);
      expect(ends(events)[1]).toMatchObject({ output: { output: "***\n" } });
      expect(JSON.stringify(events)).not.toMatch(/canary-secret-value|literal-secret-value/);
    }));

  test("that hang are abandoned when the turn is interrupted, and end with the run", () =>
    withDirectory(async (root) => {
      const marker = markedSeconds();
      const server = {
        name: "calc",
        command: "sh",
        args: ["-c", `sleep ${marker} & exec ${nodeOf(kind)} --no-warnings ~/server.mjs`],
      };
      const { running, events } = await during(
        {
          dir: await executionDir(root, "e1"),
          kind,
          prompt: script(call("hang")),
          assignment: { ...withServers(server), idleTimeoutSeconds: 60 },
        },
        async (context) => {
          await eventually(() => expect(kinds(context.events)).toContain("tool_start"));
          expect(processesLike(marker)).not.toEqual([]);
          context.interrupt();
          await eventually(() => expect(context.phases).toContain("IDLE"));
          context.endIdle();
        },
      );
      expect((await running).outcome).toBe("BLOCKED");
      expect(ends(events)).toEqual([expect.objectContaining({ state: "interrupted" })]);
      await eventually(() => expect(processesLike(marker)).toEqual([]));
    }));
});

inBubblewrap("servers of tools", () => {
  test.each([
    [
      "url",
      "http",
      ["greet", "huge"],
      [
        ["completed", "hello"],
        ["failed", expect.stringContaining("The response exceeds 16777216 bytes")],
      ],
    ],
    ["sseUrl", "sse", ["greet"], [["completed", "hello"]]],
  ] as const)(
    "at a URL are reached by the worker, with their headers, where the run may go (%s)",
    (form, transport, tools, answered) =>
      withDirectory(async (root) => {
        const server = await aHttpMcpServer();
        try {
          const host = { ...bareHost("bwrap"), egress: { allow: ["127.0.0.2:*"], internal: ["127.0.0.2"] } };
          const mcpServers = [{ name: "web", url: server[form], headers: { Authorization: "Bearer ${CANARY}" } }];
          const prompt = script(...tools.map((tool) => call(tool, "", "web")));
          const { result, events } = await execute({
            dir: await executionDir(root, "e1"),
            host,
            prompt,
            assignment: { mcpServers, secrets: { CANARY: "canary-secret-value" } },
          });
          expect(result.outcome).toBe("DONE");
          expect(ofKind(events, "mcp_server_started")).toEqual([
            { server: "web", transport, tools: ["mcp__web__greet", "mcp__web__huge"] },
          ]);
          expect(toolResults(events)).toEqual(answered);
          expect(server.headers.every(({ authorization }) => authorization === "Bearer canary-secret-value")).toBe(
            true,
          );
        } finally {
          await server.close();
        }
      }),
  );

  test("are sent to a model with their schemas, without those that plan mode excludes", () =>
    withDirectory(async (root) => {
      const model = await ModelServer.start([
        { text: "A plan.", usage: { input: 1, output: 1 } },
        { calls: [{ name: "mcp__calc__add", input: { a: 2, b: 3 } }], usage: { input: 1, output: 1 } },
        { text: "Five.", usage: { input: 1, output: 1 } },
      ]);
      try {
        const assignment = {
          provider: "anthropic",
          modelId: "claude-sonnet-4-5",
          providerCredentials: { provider: "anthropic", apiKey: "key", baseUrl: model.url },
          ...withServers(stdio("bwrap"), { name: "gone", managedId: "x" }),
        };
        await execute({
          dir: await executionDir(root, "e1"),
          assignment: {
            ...assignment,
            mode: "plan",
            inputs: [{ uid: "i", text: "Plan.", kind: "prompt", mode: "plan" }],
          },
        });
        await execute({ dir: await executionDir(root, "e2"), prompt: "Add.", assignment });
        const toolsOf = (n: number) =>
          (model.requests[n]!.body as { tools: { name: string; description: string; input_schema: object }[] }).tools;
        expect(toolsOf(0).map(({ name }) => name)).not.toContain("mcp__calc__add");
        expect(toolsOf(1)).toContainEqual(
          expect.objectContaining({
            name: "mcp__calc__add",
            description: "Does add.",
            input_schema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
          }),
        );
        expect(JSON.stringify(model.requests[1]!.body)).toContain(
          "The MCP server gone could not be started; its tools are missing.",
        );
        expect(JSON.stringify(model.requests[2]!.body)).toContain("5");
      } finally {
        await model.stop();
      }
    }));

  test("cannot access the machine outside the sandbox", () =>
    withDirectory(async (root) => {
      const dir = await executionDir(root, "e1");
      const server = {
        name: "spy",
        command: "sh",
        args: ["-c", `echo spied > ~/spied; cat ${join(root, "e1", "..")}/nothing >&2; ls ${root} >&2; exit 1`],
      };
      const { events } = await execute({ dir, prompt: script("- say: done"), assignment: { mcpServers: [server] } });
      expect(JSON.stringify(ofKind(events, "mcp_server_failed"))).toMatch(/No such file or directory/);
      expect(readFileSync(join(dir, "home", "spied"), "utf8")).toBe("spied\n");
    }));
});
