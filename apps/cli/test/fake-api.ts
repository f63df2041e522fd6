import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach } from "@jest/globals";
import { execute } from "../src/execute.ts";

type Seen = { method: string; path: string; key: string | undefined; accept: string | undefined; body: unknown };
type Answer = { status: number; body?: unknown; text?: string; type?: string };

/** Default response of `GET /whoami`, which `--team` is checked against. */
const WHOAMI = "GET /api/v1/whoami";
const DEFAULTS: Record<string, Answer> = {
  [WHOAMI]: { status: 200, body: { principal: { type: "user", uid: "u1" }, teams: [{ uid: "t1" }] } },
};

/**
 * Starts a scripted API for each test of a file (responses by method and path; a list is played in order, then its last
 * item again) that records requests, and a client for it.
 */
export function fakeApi() {
  const seen: Seen[] = [];
  const answers: Record<string, Answer | Answer[]> = {};
  let server: Server;
  let url: string;

  beforeEach(async () => {
    seen.length = 0;
    for (const path of Object.keys(answers)) delete answers[path];
    server = createServer((request, response) => {
      let text = "";
      request.on("data", (chunk) => (text += String(chunk)));
      request.on("end", () => {
        const isJson = request.headers["content-type"] === "application/json";
        const name = `${request.method} ${request.url}`;
        const isRecorded = name !== WHOAMI || answers[WHOAMI] !== undefined;
        if (isRecorded)
          seen.push({
            method: request.method!,
            path: request.url!,
            key: request.headers.authorization,
            accept: request.headers.accept === "*/*" ? undefined : request.headers.accept,
            body: text && isJson ? JSON.parse(text) : text || undefined,
          });
        const given = answers[name];
        const answer = (Array.isArray(given) ? (given.length > 1 ? given.shift() : given[0]) : given) ??
          DEFAULTS[name] ?? { status: 404, body: { status: 404, title: "Not found", reason: "nothing_here" } };
        response.writeHead(answer.status, { "content-type": answer.type ?? "application/json" });
        response.end(answer.text ?? (answer.body === undefined ? "" : JSON.stringify(answer.body)));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const run = async (isColour: boolean, argv: string[]) => {
    const out: string[] = [];
    const err: string[] = [];
    const code = await execute(argv, {
      env: { MILLWRIGHT_URL: url, MILLWRIGHT_API_KEY: "mw_test", HOME: "/nonexistent" },
      isColour,
      print: (text) => out.push(text),
      printError: (text) => err.push(text),
    });
    return { code, out: out.join("\n"), err: err.join("\n") };
  };
  const millwright = (...argv: string[]) => run(false, argv);
  const inColour = (...argv: string[]) => run(true, argv);
  return { seen, answers, millwright, inColour, url: () => url };
}
