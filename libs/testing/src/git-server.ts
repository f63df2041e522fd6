import { spawn } from "node:child_process";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { loopbackCertificate } from "./loopback-certificate.ts";

const certificate = loopbackCertificate();
/** Certificate (PEM) of the authority that signs the certificate of every server here. */
export const AUTHORITY = certificate.ca;

/** Serves git over https, by git's own server program, with Basic authentication. */
export class GitServer {
  readonly #server: Server = createServer(certificate.server, (request, response) => this.#respond(request, response));
  /** The `Authorization` header of each request. */
  readonly authorizations: (string | undefined)[] = [];
  /** The required `user:password`; undefined: anonymous read access. */
  wants: string | undefined;
  /** Whether partial clones are permitted, as on code hosts. */
  canFilter = false;
  /** Whether it supports git's protocol version 0 only, which can fetch only advertised commits. */
  isOld = false;
  /** Replaces the response of every request. */
  instead: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** The directory above the repositories. */
  root: string;

  constructor(root = "/nowhere") {
    this.root = root;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    const { authorization } = request.headers;
    this.authorizations.push(authorization);
    if (this.instead) return this.instead(request, response);
    if (this.wants !== undefined && authorization !== `Basic ${Buffer.from(this.wants).toString("base64")}`) {
      return void response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
    }
    const { pathname, search } = new URL(request.url ?? "/", this.url);
    const backend = spawn("git", ["http-backend"], {
      env: {
        PATH: process.env["PATH"],
        GIT_PROJECT_ROOT: this.root,
        GIT_HTTP_EXPORT_ALL: "1",
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
        GIT_PROTOCOL: this.isOld ? "" : String(request.headers["git-protocol"] ?? ""),
        REMOTE_ADDR: "127.0.0.1",
        GIT_CONFIG_COUNT: "2",
        GIT_CONFIG_KEY_0: "safe.directory",
        GIT_CONFIG_VALUE_0: "*",
        GIT_CONFIG_KEY_1: "uploadpack.allowFilter",
        GIT_CONFIG_VALUE_1: String(this.canFilter),
        HOME: this.root,
      },
    });
    request.pipe(backend.stdin).on("error", () => {});
    const chunks: Buffer[] = [];
    backend.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    backend.once("close", () => {
      const output = Buffer.concat(chunks);
      const end = output.indexOf("\r\n\r\n");
      const headers = Object.fromEntries(
        output
          .subarray(0, end)
          .toString("latin1")
          .split("\r\n")
          .map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]),
      );
      response.writeHead(Number.parseInt(headers["Status"] ?? "200", 10), headers).end(output.subarray(end + 4));
    });
  }
}
