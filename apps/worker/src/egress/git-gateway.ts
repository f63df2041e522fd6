import { randomUUID } from "node:crypto";
import { request as httpRequest, type ClientRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { request as httpsRequest } from "node:https";
import { getCACertificates } from "node:tls";
import type { worker } from "@millwright/contracts";
import type { OutboundRule } from "@millwright/outbound";
import type { Denial } from "./denials.ts";
import { forward, forwarded, forwardResponse, respondText } from "./forwarding.ts";
import type { IsOpen } from "./gated-pipe.ts";

/** Returns the two requests of git's smart protocol for one of its services. */
const SERVICE_PATHS = (service: string): readonly string[] => [`GET info/refs?service=${service}`, `POST ${service}`];
const REDIRECTS_MAX = 3;
const REDIRECTS = [301, 302, 307, 308];

let authorities: string[] | undefined;
/**
 * Returns the system's CA certificates in addition to those of Node.js: a company's code host may use a company
 * certificate.
 */
const trusted = (): string[] =>
  (authorities ??= [...new Set([...getCACertificates("default"), ...getCACertificates("system")])]);

/**
 * Connects the git of a sandbox to the repositories of its run, and adds the credential outside the sandbox. Only
 * fetches are allowed, except in the sandbox that pushes.
 */
export class GitGateway {
  readonly #repositories: readonly worker.Repository[];
  readonly #mayPush: boolean;
  /** The new locations of repositories, from redirects. */
  readonly #bases = new Map<worker.Repository, string>();
  /**
   * A secret part of its URLs, so that other processes on the machine's network cannot use a gateway for sandboxes of
   * kind `none`.
   */
  readonly #key = randomUUID();

  readonly #outbound: OutboundRule;

  constructor(repositories: readonly worker.Repository[], mayPush: boolean, outbound: OutboundRule) {
    this.#outbound = outbound;
    this.#repositories = repositories.filter(({ cloneUrl }) => /^https?:/.test(cloneUrl));
    this.#mayPush = mayPush;
  }

  /** Returns the URL of a repository behind a proxy at `origin`. */
  urlOf(origin: string, repository: worker.Repository): string {
    return `${origin}/git/${this.#key}/${this.#repositories.indexOf(repository)}`;
  }

  /** Returns the git settings that redirect the clone URLs of the run's repositories to this gateway. */
  settings(origin: string): Record<string, string> {
    return Object.fromEntries(
      this.#repositories.map((repository) => [`url.${this.urlOf(origin, repository)}.insteadOf`, repository.cloneUrl]),
    );
  }

  async handle(
    request: IncomingMessage,
    response: ServerResponse,
    isOpen: IsOpen,
    onDenied: (denial: Denial) => void,
  ): Promise<void> {
    const [, key, index = "", rest = ""] = /^\/git\/([^/]+)\/(\d+)\/(.+)$/.exec(request.url ?? "") ?? [];
    const repository = key === this.#key ? this.#repositories[Number(index)] : undefined;
    if (!repository) return respondText(response, 404, "There is no such repository.");
    if (this.#outbound.refuses(new URL(this.#baseOf(repository)).hostname))
      return respondText(
        response,
        403,
        "The code host is inside the network of this worker, whose operator does not allow it.",
      );
    const wanted = `${request.method} ${rest}`;
    if (
      !SERVICE_PATHS("git-upload-pack").includes(wanted) &&
      !(this.#mayPush && SERVICE_PATHS("git-receive-pack").includes(wanted))
    ) {
      if (!SERVICE_PATHS("git-receive-pack").includes(wanted))
        return respondText(response, 404, "This is not a request of git's smart protocol.");
      const { hostname, port, protocol } = new URL(repository.cloneUrl);
      onDenied({
        host: hostname,
        port: Number(port || (protocol === "https:" ? 443 : 80)),
        reason: "push_not_allowed",
      });
      return respondText(response, 403, "Pushing is not possible here; use the pull_request tool.");
    }
    const headers = forwarded(request.headers);
    if (request.method === "POST")
      return forward(request, response, this.#request(repository, "POST", rest, headers), isOpen);
    const upstreamResponse = await this.#get(repository, rest, headers);
    if (upstreamResponse) forwardResponse(upstreamResponse, response, isOpen);
    else respondText(response, 502, "The code host did not respond.");
  }

  #request(
    repository: worker.Repository,
    method: string,
    rest: string,
    headers: IncomingMessage["headers"],
  ): ClientRequest {
    const url = new URL(`${this.#baseOf(repository)}/${rest}`);
    const { authorization: _own, cookie: _cookie, ...others } = headers;
    const { lookup } = this.#outbound;
    const sent = { ...others, host: url.host, ...headerOf(repository.authorizationHeader) };
    return url.protocol === "https:"
      ? httpsRequest(url, { method, headers: sent, ca: trusted(), lookup })
      : httpRequest(url, { method, headers: sent, lookup });
  }

  /**
   * Sends a GET request. A renamed repository is then requested at its new location. Redirects to another host are not
   * followed, so that it never receives the credential.
   */
  async #get(
    repository: worker.Repository,
    rest: string,
    headers: IncomingMessage["headers"],
  ): Promise<IncomingMessage | undefined> {
    for (let count = 0; ; count += 1) {
      const upstreamResponse = await responseTo(this.#request(repository, "GET", rest, headers));
      const { location } = upstreamResponse?.headers ?? {};
      if (
        !upstreamResponse ||
        location === undefined ||
        count === REDIRECTS_MAX ||
        !REDIRECTS.includes(upstreamResponse.statusCode ?? 0)
      )
        return upstreamResponse;
      const base = this.#baseOf(repository);
      const moved = new URL(location, `${base}/${rest}`);
      if (moved.origin !== new URL(base).origin || !moved.href.endsWith(`/${rest}`)) return upstreamResponse;
      upstreamResponse.destroy();
      this.#bases.set(repository, moved.href.slice(0, -rest.length - 1));
    }
  }

  #baseOf = (repository: worker.Repository): string => this.#bases.get(repository) ?? repository.cloneUrl;
}

const responseTo = (asking: ClientRequest): Promise<IncomingMessage | undefined> =>
  new Promise((resolve) =>
    asking
      .once("response", resolve)
      .on("error", () => resolve(undefined))
      .end(),
  );

/** Parses the header of an assignment: a complete header line, or the value of `Authorization`. */
function headerOf(header: string): Record<string, string> {
  if (header === "") return {};
  const [, name, value] = /^([\w-]+):\s*(.*)$/.exec(header) ?? [];
  return name === undefined || value === undefined ? { authorization: header } : { [name.toLowerCase()]: value };
}
