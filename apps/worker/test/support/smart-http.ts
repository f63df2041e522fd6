import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { git } from "./repositories.ts";

export type SmartHttp = { url: string; header: string; requests: { path: string; authorized: boolean }[] };

/**
 * Calls `use` with a code host over HTTP, based on `git http-backend`, that requires a credential on every request.
 * `delay` delays a request until it resolves.
 */
export async function withSmartHttp(
  root: string,
  bare: string,
  use: (host: SmartHttp) => Promise<void>,
  delay: (request: string) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const header = `Authorization: Basic ${Buffer.from("x-access-token:host-credential-4711").toString("base64")}`;
  git(bare, "config", "http.receivepack", "true");
  const requests: SmartHttp["requests"] = [];
  const server = createServer((request, response) => {
    const authorized = `Authorization: ${request.headers.authorization}` === header;
    const [path = "", query = ""] = (request.url ?? "").split("?");
    requests.push({ path, authorized });
    if (!authorized) return response.writeHead(401, { "www-authenticate": "Basic" }).end();
    const env = {
      PATH: "/usr/bin:/bin",
      GIT_PROJECT_ROOT: join(root, "code"),
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_CONFIG_NOSYSTEM: "1",
      REQUEST_METHOD: request.method ?? "GET",
      PATH_INFO: path,
      QUERY_STRING: query,
      REMOTE_USER: "test",
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"],
      GIT_PROTOCOL: request.headers["git-protocol"] as string | undefined,
    };
    return void delay(`${request.method} ${request.url}`).then(() =>
      response.destroyed ? undefined : serve(env, request, response),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/acme/shop.git`, header, requests });
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Handles one request with `git http-backend`. */
function serve(env: Record<string, string | undefined>, request: IncomingMessage, response: ServerResponse): void {
  const backend = spawn("git", ["http-backend"], { env, stdio: ["pipe", "pipe", "ignore"] });
  backend.stdin.on("error", () => undefined);
  request.pipe(backend.stdin);
  response.on("close", () => backend.kill());
  const parts: Buffer[] = [];
  backend.stdout.on("data", (part: Buffer) => parts.push(part));
  backend.on("close", () => {
    const output = Buffer.concat(parts);
    const end = output.indexOf("\r\n\r\n");
    const headers = output
      .subarray(0, end)
      .toString()
      .split("\r\n")
      .map((line) => line.split(": ") as [string, string]);
    const status = Number(headers.find(([name]) => name === "Status")?.[1]?.slice(0, 3) ?? 200);
    response
      .writeHead(status, Object.fromEntries(headers.filter(([name]) => name !== "Status")))
      .end(output.subarray(end + 4));
  });
}
