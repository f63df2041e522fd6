import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { respondText } from "../egress/forwarding.ts";
import { listenOnSocket } from "../egress/unix-socket.ts";
import { refusalIn } from "@millwright/outbound";
import { isAnObject } from "../model/event-fields.ts";
import type { RunFailure } from "../model/model-provider.ts";
import { callFailure } from "../model/wires/call-failure.ts";
import { withDefaultModel } from "../model/wires/default-model.ts";
import { GATEWAY_PORT, type Relay } from "../sandbox/spec.ts";
import { atMost, systemTimers } from "../time/timers.ts";
import { CallAccounting, type AccountingDeps } from "./call-accounting.ts";
import { forwardedHeaders, readBody, respondEnding, respondError, returnedHeaders } from "./gateway-http.ts";
import { gatewayWire, type GatewayEnding, type GatewayWire, type WireCall } from "./gateway-wires.ts";
import { parsedJson } from "./json-rpc.ts";
import { maskRequest } from "./mask-request.ts";
import { RelayedResponse } from "./relayed-response.ts";
import { handleMcp, type PlatformTools } from "./platform-mcp.ts";
import { ProviderRefusals } from "./provider-refusals.ts";

/** How long calls of an ended program may take to finish. Calls of other processes in its sandbox are aborted. */
const SETTLING_MS = 5_000;
/** The maximum length of an error body. */
const REFUSAL_CHARACTERS_MAX = 100_000;
/** One request of a harness. */
type GatewayRequest = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly wire: GatewayWire;
  readonly call: WireCall;
  readonly path: string;
  readonly query: string;
};

export type GatewayDeps = AccountingDeps;

/**
 * The model access of a third-party harness, through a Unix socket. The gateway adds the provider's key to calls,
 * counts them, and rejects them if the run's limits are exceeded. No other endpoint of the provider is reachable.
 * `/mcp` serves the platform's tools.
 */
export class ModelGateway {
  readonly relay: Relay;
  /** Set when the workspace is ready. */
  platformTools: PlatformTools | undefined;
  /** Called once with the failure that ends the run, however the harness handles it. */
  onFailure: (failure: RunFailure) => void = () => {};
  readonly #deps: GatewayDeps;
  /** The operator may configure any address for a model; a team may not configure an internal one. */
  readonly #fetch: typeof fetch;
  readonly #closed = new AbortController();
  /** Aborted when the turn is to end with a synthetic response. */
  #turn = new AbortController();
  #isPaused = false;
  #close: () => void = () => {};
  #failure: RunFailure | undefined;
  readonly #accounting: CallAccounting;
  readonly #refusals: ProviderRefusals;
  /** The responses to steps since the turn began. */
  #stepResponses: RelayedResponse[] = [];
  readonly #pendingCalls = new Set<Promise<void>>();

  private constructor(deps: GatewayDeps, socket: string) {
    this.#deps = deps;
    const { assignment, outbound } = deps.ctx;
    const { baseUrl = "", operatorSet = false } = assignment.providerCredentials ?? {};
    const reach = operatorSet ? fetch : outbound.fetch;
    this.#fetch = assignment.provider === "openai-compatible" ? withDefaultModel(reach, baseUrl) : reach;
    this.#accounting = new CallAccounting(deps);
    this.#refusals = new ProviderRefusals(deps.ctx.assignment.provider);
    this.relay = { port: GATEWAY_PORT, socket };
  }

  /** Creates a gateway that listens on a Unix socket. Throws file system errors. */
  static async listen(deps: GatewayDeps): Promise<ModelGateway> {
    const directory = join(deps.ctx.dir, `gate-${randomUUID().slice(0, 8)}`);
    await mkdir(directory, { recursive: true, mode: 0o755 });
    const gateway = new ModelGateway(deps, join(directory, "gateway.sock"));
    const server = createServer(
      { requestTimeout: 0 },
      (request, response) => void gateway.#handle(request, response).catch(() => response.destroy()),
    );
    server.on("clientError", (_error, socket) => socket.destroy());
    const release = await listenOnSocket(server, gateway.relay.socket);
    gateway.#close = () => {
      server.close(release);
      server.closeAllConnections();
    };
    return gateway;
  }

  /** Pauses model calls at the end of the turn, until the harness has been notified. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Pauses model calls, and gives current and later calls a response that makes the harness end its turn. */
  endTurn(): void {
    this.pause();
    this.#turn.abort(new Error("The turn has ended."));
  }

  /** Starts a turn. */
  release(): void {
    this.#isPaused = false;
    this.#stepResponses = [];
    this.#refusals.clear();
    if (this.#turn.signal.aborted) this.#turn = new AbortController();
  }

  /** The provider's permanent refusal of the turn's last step. */
  get refusal(): RunFailure | undefined {
    return this.#refusals.open;
  }

  /** How many steps of the turn were answered, and how many of them the provider has counted. */
  get answeredSteps(): { readonly answered: number; readonly counted: number } {
    return {
      answered: this.#stepResponses.length,
      counted: this.#stepResponses.filter(({ isCounted }) => isCounted).length,
    };
  }

  /** Resolves when every call has ended and its usage is reported, or after `SETTLING_MS`. Never rejects. */
  settled(): Promise<void> {
    return atMost(systemTimers, SETTLING_MS, Promise.allSettled([...this.#pendingCalls]));
  }

  /** Ends every call. */
  close(): void {
    this.#closed.abort(new Error("The gateway is closed."));
    this.#close();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://gateway");
    if (request.method === "HEAD" && pathname === "/") return void response.writeHead(200).end();
    if (request.method !== "POST") return respondText(response, 405, "This is not served here.");
    const body = parsedJson(await readBody(request));
    if (pathname === "/mcp") return this.#mcp({ request, response, body });
    const wire = gatewayWire(this.#deps.ctx.assignment.provider);
    const call = wire?.read(pathname, isAnObject(body) ? body : {});
    if (!wire || !call) return respondText(response, 404, "This is not served here.");
    if (this.#isPaused) return this.#wait(response, wire, pathname);
    if (!isAnObject(body)) return respondError(response, 400, "The body must be a JSON object.");
    searchParams.delete("key"); // some clients send the key as a query parameter
    const incomingCall = {
      request,
      response,
      wire,
      call,
      query: searchParams.size === 0 ? "" : `?${searchParams.toString()}`,
      path: pathname,
    };
    const pendingCall = this.#accounting.sequenced(call, async () =>
      response.closed ? undefined : this.#call(incomingCall, body),
    );
    this.#pendingCalls.add(pendingCall);
    return pendingCall.finally(() => this.#pendingCalls.delete(pendingCall));
  }

  /**
   * Delays a call until the harness has been notified of the end of its turn. The harness then closes the call, or
   * receives a response that ends the turn.
   */
  async #wait(response: ServerResponse, { ending }: GatewayWire, path: string): Promise<void> {
    const { signal } = this.#turn;
    if (!signal.aborted)
      await new Promise(
        (resolve) => (response.once("close", resolve), signal.addEventListener("abort", resolve, { once: true })),
      );
    if (ending && signal.aborted) respondEnding(response, ending(path));
  }

  async #mcp(call: { request: IncomingMessage; response: ServerResponse; body: unknown }): Promise<void> {
    if (!this.platformTools) return respondText(call.response, 503, "There is no workspace yet.");
    await handleMcp(this.platformTools, call);
  }

  async #call(incomingCall: GatewayRequest, body: JsonObject): Promise<void> {
    const { ctx } = this.#deps;
    const { request, response, wire, call, path, query } = incomingCall;
    const { provider, providerCredentials } = ctx.assignment;
    const { apiKey = "", baseUrl = "" } = providerCredentials ?? {};
    const callId = this.#accounting.nextCallId();
    const abandoned = new AbortController();
    response.once("close", () => abandoned.abort(new Error("The agent program has closed the call.")));
    const { signal: turn } = this.#turn;
    const signal = AbortSignal.any([ctx.signal, this.#closed.signal, abandoned.signal, ...(wire.ending ? [turn] : [])]);
    const [limited, tooCostly] = await this.#accounting.reserve(body, wire, call, abandoned.signal);
    const failure = this.#failure ?? this.#accounting.exceeded(call) ?? tooCostly;
    if (failure) return this.#fail(response, failure);
    await ctx.gate.whenOpen();
    const sent = maskRequest(wire.repaired?.(limited) ?? limited, (text) => ctx.mask(text));
    const ending = (): GatewayEnding | undefined => (turn.aborted ? wire.ending?.(path) : undefined);
    const providerResponse = await this.#fetch(wire.url(baseUrl, path) + query, {
      method: "POST",
      headers: { ...forwardedHeaders(request), ...wire.key(apiKey) },
      body: JSON.stringify(sent),
      redirect: "error",
      signal,
    }).catch((error: unknown) => refusalIn(error));
    if (providerResponse instanceof Error) return this.#fail(response, callFailure(provider, providerResponse).failure);
    if (!providerResponse) return this.#unanswered(response, ending());
    if (!providerResponse.ok) return this.#refused(incomingCall, providerResponse);
    response.writeHead(providerResponse.status, returnedHeaders(providerResponse));
    const relayed = new RelayedResponse();
    if (call.kind === "step") this.#stepResponses.push(relayed);
    if (call.kind === "step") this.#refusals.clear();
    this.#accounting.add(call);
    await relayed.pass(providerResponse, response, { assertOpen: () => ctx.gate.assertOpen(), ending });
    ctx.modelCalled(provider, relayed.isComplete ? "ok" : "interrupted");
    if (call.kind !== "count") await this.#accounting.report(callId, call, relayed, sent);
  }

  #unanswered(response: ServerResponse, ending: GatewayEnding | undefined): void {
    if (ending) return respondEnding(response, ending);
    respondError(response, 502, "The model provider cannot be reached.");
  }

  /** Forwards an error to the program, which may handle it. Ends the run if the error is permanent. */
  async #refused({ response, call }: GatewayRequest, providerResponse: Response): Promise<void> {
    const { ctx } = this.#deps;
    const body = (await providerResponse.text().catch(() => "")).slice(0, REFUSAL_CHARACTERS_MAX);
    const isKey = [401, 402, 403].includes(providerResponse.status);
    const failure = call.kind === "step" || isKey ? this.#refusals.add(providerResponse.status, body) : undefined;
    ctx.modelCalled(ctx.assignment.provider, failure?.reason ?? "model_unavailable");
    if (failure) return this.#fail(response, failure);
    response.writeHead(providerResponse.status, returnedHeaders(providerResponse)).end(body);
  }

  #fail(response: ServerResponse, failure: RunFailure): void {
    if (!this.#failure) {
      this.#failure = failure;
      this.onFailure(failure);
    }
    respondError(response, 400, failure.message, failure.reason);
  }
}
